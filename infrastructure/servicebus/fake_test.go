package servicebus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
)

// fakeLink stands for a broker with one entity. It accepts batches of at most maxBatch
// bytes and single messages of at most maxMessage; refuse may give an error for a send.
type fakeLink struct {
	maxBatch, maxMessage int
	delay                time.Duration
	refuse               func(ids []string, keys map[string]bool) error

	mu       sync.Mutex
	accepted map[string][]string // ids by key
	sends    int
	opened   int
	closed   int
	batches  int            // sent
	alone    int            // messages sent outside of a batch
	keysIn   map[string]int // batches in flight by key
	overlap  error
	last     *fakeBatch
}

// fakeBatch counts the body of a message as its size. Like the real one it keeps the
// parts of its first message.
type fakeBatch struct {
	max, size int
	ids       []string
	keys      []string
	first     *azservicebus.AMQPAnnotatedMessage
	envelope  map[string]any // the first message's properties when it was added
}

func (b *fakeBatch) AddAMQPAnnotatedMessage(m *azservicebus.AMQPAnnotatedMessage, _ *azservicebus.AddAMQPAnnotatedMessageOptions) error {
	n := len(m.Body.Data[0])
	if b.size+n > b.max {
		return azservicebus.ErrMessageTooLarge
	}
	if b.first == nil {
		copied := *m
		b.first, b.envelope = &copied, maps.Clone(m.ApplicationProperties)
	}
	b.size += n
	b.ids = append(b.ids, m.Properties.MessageID.(string))
	b.keys = append(b.keys, *m.Properties.GroupID)
	return nil
}

func (l *fakeLink) open(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened++
	return nil
}

func (l *fakeLink) newBatch(context.Context) (batch, error) {
	return &fakeBatch{max: l.maxBatch}, nil
}

func (l *fakeLink) send(ctx context.Context, sent batch, m *azservicebus.AMQPAnnotatedMessage) error {
	b, batched := sent.(*fakeBatch)
	l.mu.Lock()
	if batched {
		l.batches++
		l.last = b
	} else {
		l.alone++
	}
	l.mu.Unlock()
	if !batched {
		b = &fakeBatch{max: l.maxMessage}
		if err := b.AddAMQPAnnotatedMessage(m, nil); err != nil {
			return err
		}
	}
	keys := make(map[string]bool)
	for _, k := range b.keys {
		keys[k] = true
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
	if !maps.Equal(b.envelope, b.first.ApplicationProperties) {
		return errors.New("the envelope changed after the first message was added")
	}
	if l.refuse != nil {
		if err := l.refuse(b.ids, keys); err != nil {
			return err
		}
	}
	if l.accepted == nil {
		l.accepted = make(map[string][]string)
	}
	for i, id := range b.ids {
		l.accepted[b.keys[i]] = append(l.accepted[b.keys[i]], id)
	}
	return nil
}

// enter counts the batches in flight by key and notes if one has two.
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

func (l *fakeLink) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return nil
}

func publisherOver(t *testing.T, l *fakeLink, opts *PublisherOptions) *Publisher {
	t.Helper()
	if l.maxBatch == 0 {
		l.maxBatch, l.maxMessage = 1000, 1000
	}
	return newPublisher(l, "contacts", opts)
}

// group returns messages of a key with bodies of the given sizes, ids key.1, key.2, ...
func group(key string, sizes ...int) relay.Group {
	g := relay.Group{Key: key}
	for i, size := range sizes {
		g.Messages = append(g.Messages, relay.Message{
			ID: fmt.Sprintf("%s.%d", key, i+1), Key: key, Action: "Changed", Body: make([]byte, size), Sequence: int64(i + 1),
		})
	}
	return g
}

// rejected is what the broker says of a message that it rejects.
func rejected(condition amqp.ErrCond) error {
	return &notAcceptedError{amqp.Error{Condition: condition}}
}
