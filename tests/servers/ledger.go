package servers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/lab/verify"
	"feedbox/tests/testkit"
)

// Ledger is the database of a consumer: the writes of its handlers and the inbox marks, both in
// one transaction. All processes of the consumer share it. The zero value is empty.
type Ledger struct {
	mu       sync.Mutex // guards the fields below
	messages []verify.Message
	repeats  int
	marks    map[string]consumer.Mark
}

var _ consumer.Inbox = (*Ledger)(nil)

// Handle is a handler that stores an event unless it is stored already.
func (l *Ledger) Handle(ctx context.Context, e *consumer.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch consumer.Judge(l.marks[e.Key], e) {
	case consumer.Duplicate, consumer.Stale:
		l.repeats++
		return nil
	case consumer.Fresh, consumer.Gap, consumer.Fork:
	}
	l.messages = append(l.messages, verify.Message{ID: e.ID, Session: e.Key, Subject: e.Action, Version: e.AggregateVersion, Sequence: e.Sequence})
	if l.marks == nil {
		l.marks = map[string]consumer.Mark{}
	}
	l.marks[e.Key] = l.marks[e.Key].Next(e)
	return nil
}

// Last implements consumer.Inbox.
func (l *Ledger) Last(_ context.Context, key string) (consumer.Mark, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.marks[key], nil
}

// Record implements consumer.Inbox. Handle has stored the mark already, except for dead letters.
func (l *Ledger) Record(_ context.Context, key string, m consumer.Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.marks == nil {
		l.marks = map[string]consumer.Mark{}
	}
	if m.Supersedes(l.marks[key]) {
		l.marks[key] = m
	}
	return nil
}

// Observe counts the events that the inbox drops.
func (l *Ledger) Observe(_ context.Context, o consumer.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o.Action == consumer.Dropped {
		l.repeats++
	}
}

// Messages returns the stored events in order, and the number of dropped repeats.
func (l *Ledger) Messages() (messages []verify.Message, repeats int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]verify.Message(nil), l.messages...), l.repeats
}

// Count returns the number of stored events.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.messages)
}

// Judge waits until the ledger has all published events, and verifies the guarantees.
func (l *Ledger) Judge(t *testing.T, published []relay.Group) {
	t.Helper()
	var run verify.Run
	for _, g := range published {
		run.Aggregates = append(run.Aggregates, verify.Aggregate{ID: g.Key, Version: int64(len(g.Messages)), Sequence: int64(len(g.Messages))})
		for _, m := range g.Messages {
			run.Events = append(run.Events, verify.Event{ID: m.ID, Key: m.Key, Action: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence})
		}
	}
	testkit.Eventually(t, 2*time.Minute, fmt.Sprintf("all %d events", len(run.Events)), func() bool { return l.Count() >= len(run.Events) })
	run.Messages, run.Repeats = l.Messages()
	t.Logf("%s; %d repeats", run.Summary(), run.Repeats)
	for _, breach := range run.Verify() {
		t.Error(breach)
	}
}
