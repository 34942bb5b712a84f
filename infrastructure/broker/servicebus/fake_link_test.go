package servicebus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
)

// fakeLink simulates a broker with one entity. It accepts batches of up to maxBatch bytes and single
// messages with bodies of up to maxMessage bytes. refuse may return an error for a send.
type fakeLink struct {
	maxBatch, maxMessage int
	opening, delay       time.Duration // of open and of a send
	refuse               func(ids []string, keys map[string]bool) error
	closing              error // of close

	mu       sync.Mutex
	accepted map[string][]string // ids by key
	sends    int
	opened   int
	closed   int
	batches  int            // sent
	alone    int            // messages sent outside of a batch
	keysIn   map[string]int // batches in flight by key
	overlap  error
}

func (l *fakeLink) open(context.Context) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	time.Sleep(l.opening)
	return l.maxBatch, nil
}

// read returns the messages of a send.
func (l *fakeLink) read(m *amqp.Message) ([]*amqp.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Format != batchFormat {
		l.alone++
		if len(m.Data[0]) > l.maxMessage {
			return nil, &amqp.Error{Condition: amqp.ErrCondMessageSizeExceeded}
		}
		return []*amqp.Message{m}, nil
	}
	l.batches++
	if b, err := m.MarshalBinary(); err != nil || len(b) > l.maxBatch {
		return nil, fmt.Errorf("a batch of %d bytes, %w", len(b), err)
	}
	var messages []*amqp.Message
	for _, data := range m.Data {
		one := new(amqp.Message)
		if err := one.UnmarshalBinary(data); err != nil {
			return nil, err
		}
		messages = append(messages, one)
	}
	if first := messages[0]; m.Properties.MessageID != first.Properties.MessageID || *m.Properties.GroupID != *first.Properties.GroupID ||
		m.Annotations[annotationPartitionKey] != first.Annotations[annotationPartitionKey] {
		return nil, errors.New("the envelope is not that of the first message")
	}
	return messages, nil
}

func (l *fakeLink) send(ctx context.Context, m *amqp.Message) error {
	messages, err := l.read(m)
	if err != nil {
		return err
	}
	var ids []string
	keys := make(map[string]bool)
	for _, m := range messages {
		ids = append(ids, m.Properties.MessageID.(string))
		keys[*m.Properties.GroupID] = true
	}
	l.enter(keys, 1)
	defer l.enter(keys, -1)
	if l.delay > 0 {
		timer := time.NewTimer(l.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sends++
	if l.refuse != nil {
		if err := l.refuse(ids, keys); err != nil {
			return err
		}
	}
	if l.accepted == nil {
		l.accepted = make(map[string][]string)
	}
	for i, m := range messages {
		key := *m.Properties.GroupID
		l.accepted[key] = append(l.accepted[key], ids[i])
	}
	return nil
}

// enter counts the batches in flight by key, and records an error if a key has two.
func (l *fakeLink) enter(keys map[string]bool, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keysIn == nil {
		l.keysIn = make(map[string]int)
	}
	for k := range keys {
		if l.keysIn[k] += n; l.keysIn[k] > 1 {
			l.overlap = fmt.Errorf("two batches of key %s in flight", k)
		}
	}
}

func (l *fakeLink) close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return l.closing
}

func publisherOver(t *testing.T, l *fakeLink, opts *PublisherOptions) *Publisher {
	t.Helper()
	if l.maxBatch == 0 {
		l.maxBatch, l.maxMessage = 1<<20, 1<<20
	}
	return newPublisher(l, "contacts", opts)
}

// group returns messages of a key with bodies of the given sizes and the ids key.1, key.2, ...
func group(key string, sizes ...int) relay.Group {
	g := relay.Group{Key: key}
	for i, size := range sizes {
		g.Messages = append(g.Messages, relay.Message{
			ID: fmt.Sprintf("%s.%d", key, i+1), Key: key, Action: "Changed", Body: make([]byte, size), Sequence: int64(i + 1),
		})
	}
	return g
}

// rejected returns the error of a rejected message.
func rejected(condition amqp.ErrCond) error {
	return &notAcceptedError{amqp.Error{Condition: condition}}
}
