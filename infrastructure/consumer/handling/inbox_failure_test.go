package handling_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/consumer"
)

func TestInboxFailuresDoNotCountAsAttempts(t *testing.T) {
	for _, fails := range []string{"Last", "Record"} {
		box := &failing{Inbox: consumer.NewMemoryInbox(0), fails: fails}
		run(t, consumer.Options{Inbox: box, Attempts: 2}, func(context.Context, *consumer.Event) error { return nil }, func(d *broker) {
			box.until = time.Now().Add(10 * time.Minute)
			d.deliver("a", 1)
			handled := func() bool {
				d.mu.Lock()
				defer d.mu.Unlock()
				return slices.Contains(d.outcomes, "a1 handled")
			}
			time.Sleep(9 * time.Minute)
			if handled() {
				t.Errorf("%s: handled while the inbox was unavailable", fails)
			}
			d.want(t, fails+": dead letters", &d.deadLetters, 2*time.Minute)
			if !handled() {
				t.Errorf("%s: not handled after the inbox recovered", fails)
			}
		})
	}
}

// failing is an inbox with one method that fails until a time.
type failing struct {
	consumer.Inbox
	fails string
	until time.Time
}

func (f *failing) err(method string) error {
	if method == f.fails && time.Now().Before(f.until) {
		return errors.New("inbox unavailable")
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
