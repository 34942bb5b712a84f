package subscriber

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// fakeSource is a session subscription in memory, with the rules of the broker that
// matter here: one holder a session, an abandoned message returns to the head with its
// count raised, closing gives back the rest in order.
type fakeSource struct {
	lockFor time.Duration // 0 = 30 s
	steal   bool          // renewals fail with a lost lock

	mu       sync.Mutex
	order    []string
	enqueued int64
	sessions map[string]*fakeQueue
	changed  chan struct{} // closed and replaced at every change
	holders  int
	most     int // most sessions held at a time
	accepts  int
	failures int // how many accepts fail first
	renewals int
	dead     []string // "id reason description"
}

type fakeQueue struct {
	messages []*azservicebus.ReceivedMessage
	held     bool
}

// giveBack returns messages to their places.
func (q *fakeQueue) giveBack(messages ...*azservicebus.ReceivedMessage) {
	q.messages = append(slices.Clone(q.messages), messages...)
	slices.SortFunc(q.messages, func(a, b *azservicebus.ReceivedMessage) int {
		return cmp.Compare(*a.SequenceNumber, *b.SequenceNumber)
	})
}

func newFakeSource() *fakeSource {
	return &fakeSource{sessions: map[string]*fakeQueue{}, changed: make(chan struct{}), lockFor: 30 * time.Second}
}

// put enqueues an event of the key; sequence 0 is left out.
func (f *fakeSource) put(key, id string, sequence int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.sessions[key]
	if q == nil {
		q = &fakeQueue{}
		f.sessions[key] = q
		f.order = append(f.order, key)
	}
	action := "Changed"
	f.enqueued++
	number := f.enqueued
	m := &azservicebus.ReceivedMessage{SequenceNumber: &number, MessageID: id, Subject: &action, Body: []byte(`{}`), ApplicationProperties: map[string]any{}}
	if sequence != 0 {
		m.ApplicationProperties["sequence"] = sequence
	}
	q.messages = append(q.messages, m)
	f.notify()
}

// notify wakes who waits for a change. mu is held.
func (f *fakeSource) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeSource) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.sessions {
		if len(q.messages) > 0 {
			return false
		}
	}
	return true
}

func (f *fakeSource) accept(ctx context.Context) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		f.mu.Lock()
		if f.failures > 0 {
			f.failures--
			f.mu.Unlock()
			return nil, errors.New("broker is away")
		}
		for i, key := range f.order {
			if q := f.sessions[key]; !q.held && len(q.messages) > 0 {
				f.order = append(append(f.order[:i:i], f.order[i+1:]...), key)
				q.held = true
				f.accepts++
				f.holders++
				f.most = max(f.most, f.holders)
				f.mu.Unlock()
				return &fakeSession{source: f, key: key, queue: q, until: time.Now().Add(f.lockFor)}, nil
			}
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errNoSession
		}
	}
}

type fakeSession struct {
	source *fakeSource
	key    string
	queue  *fakeQueue
	until  time.Time
	inHand []*azservicebus.ReceivedMessage
	closed bool
}

func (s *fakeSession) SessionID() string      { return s.key }
func (s *fakeSession) LockedUntil() time.Time { return s.until }

func (s *fakeSession) receive(ctx context.Context, limit int) ([]*azservicebus.ReceivedMessage, error) {
	for {
		s.source.mu.Lock()
		if n := min(limit, len(s.queue.messages)); n > 0 {
			out := s.queue.messages[:n:n]
			s.queue.messages = s.queue.messages[n:]
			s.inHand = append(s.inHand, out...)
			for _, m := range out {
				m.DeliveryCount = max(m.DeliveryCount, 1)
			}
			s.source.mu.Unlock()
			return out, nil
		}
		changed := s.source.changed
		s.source.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take removes m from what is in hand; nil if the lock is gone.
func (s *fakeSession) take(m *azservicebus.ReceivedMessage) error {
	if s.closed || time.Now().After(s.until) {
		return &azservicebus.Error{Code: azservicebus.CodeLockLost}
	}
	for i, have := range s.inHand {
		if have == m {
			s.inHand = append(s.inHand[:i:i], s.inHand[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("message %s is not in hand", m.MessageID)
}

func (s *fakeSession) complete(_ context.Context, m *azservicebus.ReceivedMessage) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	return s.take(m)
}

func (s *fakeSession) abandon(_ context.Context, m *azservicebus.ReceivedMessage) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	if err := s.take(m); err != nil {
		return err
	}
	m.DeliveryCount++
	s.queue.giveBack(m)
	s.source.notify()
	return nil
}

func (s *fakeSession) deadLetter(_ context.Context, m *azservicebus.ReceivedMessage, reason, description string) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	s.source.dead = append(s.source.dead, m.MessageID+" "+reason+" "+description)
	return s.take(m)
}

func (s *fakeSession) renew(context.Context) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	s.source.renewals++
	if s.source.steal || time.Now().After(s.until) {
		return &azservicebus.Error{Code: azservicebus.CodeLockLost}
	}
	s.until = time.Now().Add(s.source.lockFor)
	return nil
}

func (s *fakeSession) Close(context.Context) error {
	s.source.mu.Lock()
	defer s.source.mu.Unlock()
	s.closed = true
	s.source.holders--
	s.queue.held = false
	s.queue.giveBack(s.inHand...)
	s.inHand = nil
	s.source.notify()
	return nil
}
