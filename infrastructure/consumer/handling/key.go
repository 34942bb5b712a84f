package handling

import (
	"context"
	"errors"
	"fmt"

	"feedbox/infrastructure/consumer"
)

// Key is the work on one key, for its one holder.
type Key struct {
	*Work
	Inbox consumer.Inbox
	// GapDeliveries is how often an event behind a gap waits before it is handled all the same.
	GapDeliveries int

	last consumer.Mark
}

// Open reads how far the key was handled.
func (k *Key) Open(ctx context.Context, key string) (err error) {
	k.last, err = k.Inbox.Last(ctx, key)
	return err
}

// errWaitForMissing makes an event wait that came before its predecessor.
var errWaitForMissing = errors.New("an earlier event of the key is missing; waiting for it to arrive")

// Apply does with an event what the inbox's verdict asks for, and notes in out how that went.
// Without an error there the event is marked in the inbox and can be settled. One that the
// handler sets aside is to be marked once it is there (Record), lest it be taken for handled
// and is nowhere. refused tells that it was the handler that failed.
func (k *Key) Apply(ctx context.Context, out *consumer.Outcome) (refused bool) {
	e := out.Event
	switch out.Verdict = consumer.Judge(k.last, e); out.Verdict {
	case consumer.Duplicate, consumer.Stale:
		out.Action = consumer.Dropped
		return false
	case consumer.Gap:
		out.Missing = e.Sequence - k.last.Sequence - 1
		if e.DeliveryCount <= k.GapDeliveries {
			out.Err = errWaitForMissing
			return false
		}
	case consumer.Fresh:
	}
	if out.Err = k.Handle(ctx, e); out.Err != nil {
		return true
	}
	out.Err = k.Record(ctx, e)
	return false
}

// Misses reports whether an event before e has not been handled.
func (k *Key) Misses(e *consumer.Event) bool { return consumer.Judge(k.last, e) == consumer.Gap }

// Record marks an event in the inbox.
func (k *Key) Record(ctx context.Context, e *consumer.Event) error {
	if err := k.Inbox.Record(ctx, e.Key, e.Mark()); err != nil {
		return fmt.Errorf("record event %s: %w", e.ID, err)
	}
	k.last = e.Mark()
	return nil
}
