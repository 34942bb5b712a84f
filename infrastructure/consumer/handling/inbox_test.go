package handling_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

// Failures of the inbox are no attempts: neither to read a mark nor to write one.
func TestTheInboxIsAway(t *testing.T) {
	for _, fails := range []string{"Last", "Record"} {
		box := &failing{Inbox: consumer.NewMemoryInbox(0), fails: fails}
		run(t, consumer.Options{Inbox: box, Attempts: 2}, func(context.Context, *consumer.Event) error { return nil }, func(d *desk) {
			box.until = time.Now().Add(10 * time.Minute)
			d.deliver("a", 1)
			done := func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return slices.Contains(d.outcomes, "a1 handled")
			}
			time.Sleep(9 * time.Minute)
			if done() {
				t.Errorf("%s: done while the inbox was away", fails)
			}
			d.want(t, fails+": letters", &d.letters, 2*time.Minute)
			if !done() {
				t.Errorf("%s: not done when the inbox was back", fails)
			}
		})
	}
}

// failing is an inbox one of whose methods fails for a while.
type failing struct {
	consumer.Inbox
	fails string
	until time.Time
}

func (f *failing) err(method string) error {
	if method == f.fails && time.Now().Before(f.until) {
		return errors.New("the inbox is away")
	}
	return nil
}

func (f *failing) Last(ctx context.Context, key string) (consumer.Mark, error) {
	if err := f.err("Last"); err != nil {
		return consumer.Mark{}, err
	}
	return f.Inbox.Last(ctx, key)
}

func (f *failing) Record(ctx context.Context, key string, m consumer.Mark) error {
	if err := f.err("Record"); err != nil {
		return err
	}
	return f.Inbox.Record(ctx, key, m)
}
