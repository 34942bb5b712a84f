package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// KeyProcessor handles the events of one key for its owner. It serves one goroutine.
type KeyProcessor struct {
	*Runner
	Inbox consumer.Inbox
	// GapDeliveries is how often an event after a gap waits before it is handled without the
	// missing event.
	GapDeliveries int
	// DeliveryLimit is the number of deliveries to a handler after which an event is dead-lettered.
	// 0: no limit.
	DeliveryLimit int
	// Parking parks events instead of dead-lettering them. Nil: off.
	Parking *Parking

	last consumer.Mark
	gate *relay.Closing // what closed the gate of the key; nil: it is open
}

// Progress is the state of a delivery in this process. The broker also counts deliveries without a handler.
type Progress struct {
	GapWaits int // waits for a missing event

	begun   bool // passed to the handler
	counted bool // its delivery is counted in the inbox
}

// Load reads the mark of the key from the inbox, and whether the key is parked.
func (k *KeyProcessor) Load(ctx context.Context, key string) (err error) {
	k.last, err = k.Inbox.Last(ctx, key)
	if err == nil && k.Parking != nil && key != "" {
		k.gate, err = k.Parking.closed(ctx, key)
	}
	if err == nil && k.gate != nil { // a mark from before the gate was closed would hold an event that was handled
		k.last, err = k.Inbox.Last(ctx, key)
	}
	if err == nil && k.Parking != nil && k.gate == nil && k.last.Parking == consumer.ParkedKey {
		err = k.release(ctx, key)
	}
	return err
}

// release lets handlers of the key store their marks again, after its gate was opened. If the key was parked
// again meanwhile, the mark is another one and stays.
func (k *KeyProcessor) release(ctx context.Context, key string) error {
	next := k.last
	next.Parking = consumer.OpenKey
	err := k.Inbox.Record(ctx, key, next)
	if err == nil {
		k.last, err = k.Inbox.Last(ctx, key)
	}
	if err == nil && k.last.Parking == consumer.ParkedKey {
		err = fmt.Errorf("key %s was parked again", key)
	}
	return err
}

// Parks reports whether a refused event is parked and not dead-lettered or dropped. An event without a key needs
// no order. A dead letter that an operator has sent again is not in the order of its key any more.
func (k *KeyProcessor) Parks(e *consumer.Event) bool {
	return k.waits(e) && k.Policy(e).Refused == consumer.ParkOrDeadLetter
}

// waits reports whether an event is parked after a parked one of its key, by whatever policy, because that
// keeps the order.
func (k *KeyProcessor) waits(e *consumer.Event) bool {
	return k.Parking != nil && e.Key != "" && e.Resubmission == ""
}

// Drop records a refused event and sets out to its end, after which it can be settled. It reports whether the
// mark of the key is that of the inbox.
func (k *KeyProcessor) Drop(ctx context.Context, out *consumer.Outcome, reason *consumer.DeadLetterError) (recorded bool) {
	if err := k.Record(ctx, out.Event); err != nil {
		out.Err = err
		return false
	}
	out.Action, out.Err = consumer.Dropped, reason
	return true
}

// Park parks a refused event, so that the later ones of its key are parked too, or without a reason one of
// those, and records it. The event can be settled then. The mark of a key is that of its last event which was
// handled or parked.
func (k *KeyProcessor) Park(ctx context.Context, e *consumer.Event, reason *consumer.DeadLetterError, attempts int) error {
	var err error
	if reason != nil {
		k.Parking.remember(e, reason, attempts)
		err = k.announce(ctx, e)
	}
	if err == nil {
		k.gate, err = k.Parking.park(ctx, e, k.gate, reason, attempts)
	}
	if err != nil {
		return err
	}
	k.Parking.forget(e)
	return k.record(ctx, e, consumer.ParkedKey)
}

// announce stores in the mark of the key that e will be parked. It fails if another process has handled e
// meanwhile, or is about to: that one has changed the mark, or cannot do it after this.
func (k *KeyProcessor) announce(ctx context.Context, e *consumer.Event) error {
	next := k.last
	next.Replaces = "" // the mark of a fork is stored already, and must not replace a later one again
	if next.Parking = idOf(e); next == k.last {
		return nil
	}
	err := k.Inbox.Record(ctx, e.Key, next)
	var stored consumer.Mark
	if err == nil {
		stored, err = k.Inbox.Last(ctx, e.Key)
	}
	if err != nil {
		return fmt.Errorf("record that event %s will be parked: %w", e.ID, err)
	}
	if stored.Sequence != next.Sequence || stored.EventID != next.EventID || stored.Parking != next.Parking && stored.Parking != k.last.Parking {
		return fmt.Errorf("event %s is not parked: another process has handled it or a later one of key %s", e.ID, e.Key)
	}
	k.last = next
	return nil
}

// isAnnounced reports whether an owner of the key has decided to park e, and was stopped before it had done so.
// Without option Park it also reports whether the key is parked.
func (k *KeyProcessor) isAnnounced(e *consumer.Event) bool {
	return k.last.Parking != "" && e.Resubmission == "" && (k.last.Parking == idOf(e) || k.Parking == nil && k.last.Parking == consumer.ParkedKey)
}

// parkAnnounced parks an event for the owner that has announced it, and sets action and error of out. If that was
// another process, the reason is not known.
func (k *KeyProcessor) parkAnnounced(ctx context.Context, out *consumer.Outcome) {
	e := out.Event
	if k.Parking == nil {
		out.Err = fmt.Errorf("event %s belongs to a key that was parked by a process with option Park: set the option here, too", e.ID)
		return
	}
	reason, attempts := k.Parking.reasonOf(e)
	if out.Err = k.Park(ctx, e, reason, attempts); out.Err == nil {
		out.Action, out.Err = consumer.Parked, reason
	}
}

// IsWait reports whether err delays an event until an earlier one of its key arrives.
func IsWait(err error) bool { return errors.Is(err, errWaitForMissing) }

// errWaitForMissing delays an event that was delivered before its predecessor.
var errWaitForMissing = errors.New("an earlier event of the key is missing; waiting for it to arrive")

// Process handles an event unless the inbox has seen it, and sets the verdict, action and error of
// out. If there is no error, the event is recorded in the inbox and can be settled. An event that is
// to be dead-lettered or deferred must be recorded by the caller after the broker has accepted that:
// if it were recorded before, a failed attempt would lose the event. handlerFailed reports whether
// the error is the handler's.
func (k *KeyProcessor) Process(ctx context.Context, out *consumer.Outcome, p *Progress) (handlerFailed bool) {
	e := out.Event
	last := k.last
	if e.Resubmission != "" {
		if last, out.Err = k.Inbox.Last(ctx, e.InboxKey()); out.Err != nil {
			return false
		}
	}
	switch out.Verdict = consumer.Judge(last, e); out.Verdict {
	case consumer.Duplicate, consumer.Stale:
		out.Action = consumer.Dropped
		if e.WasParked() { // maybe handled by a process that ended before it had recorded that for the key, too
			out.Err = k.Record(ctx, e)
		}
		return false
	case consumer.Gap:
		out.Missing = e.Sequence - k.last.Sequence - 1
		if p.GapWaits < k.GapDeliveries {
			p.GapWaits++
			out.Err = errWaitForMissing
			return false
		}
	case consumer.Fork:
		e.Replaced = k.last.Replaced(e)
	case consumer.Fresh:
	}
	if k.isAnnounced(e) {
		k.parkAnnounced(ctx, out)
		return false
	}
	if k.gate != nil && k.waits(e) {
		if out.Err = k.Park(ctx, e, nil, 0); out.Err == nil {
			out.Action = consumer.Parked
		}
		if !errors.Is(out.Err, relay.ErrGateOpen) {
			return false
		}
		if out.Err = k.Load(ctx, e.Key); out.Err != nil {
			return false
		}
		return k.Process(ctx, out, p)
	}
	called := false
	out.Err = k.handleAfter(ctx, e, func() error {
		err := k.countDelivery(ctx, e, p)
		called = err == nil
		return err
	})
	if out.Err != nil {
		if IsUnavailable(out.Err) {
			k.uncountDelivery(ctx, e, p)
		}
		return called || IsFinal(out.Err) || IsUntried(out.Err)
	}
	out.Err = k.Record(ctx, e)
	return false
}

// countDelivery counts a delivery in the inbox before the handler is called, because a handler that ends
// its process leaves no other trace. It returns a dead-letter error if the limit is reached, which takes as
// many deliveries by the broker: it counts nothing before, so most events cost nothing.
func (k *KeyProcessor) countDelivery(ctx context.Context, e *consumer.Event, p *Progress) error {
	if k.DeliveryLimit > 0 && !p.begun && e.ID != "" && e.DeliveryCount > k.DeliveryLimit {
		key := deliveriesOf(e)
		counted, err := k.Inbox.Last(ctx, key)
		if err == nil && counted.Sequence >= int64(k.DeliveryLimit) {
			return &consumer.DeadLetterError{Reason: consumer.ReasonDeliveries, Err: fmt.Errorf("%d deliveries to handlers ended without a result", counted.Sequence)}
		}
		if err == nil {
			err = k.Inbox.Record(ctx, key, consumer.Mark{Sequence: counted.Sequence + 1, EventID: e.ID})
		}
		if err != nil {
			return fmt.Errorf("count deliveries of event %s: %w", e.ID, err)
		}
		p.counted = true
	}
	p.begun = true
	return nil
}

// deliveriesOf returns the key of a count of deliveries. It is not that of an aggregate; the inbox deletes it
// in time like any other.
func deliveriesOf(e *consumer.Event) string { return "deliveries:" + e.ID }

// uncountDelivery removes the count of an event, because the handler has returned: it is unavailable, which
// says nothing about the event. If that fails, the event may be refused after fewer deliveries than the limit.
func (k *KeyProcessor) uncountDelivery(ctx context.Context, e *consumer.Event, p *Progress) {
	if !p.counted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parkTimeout) // the lock may be lost
	defer cancel()
	if err := k.Inbox.Record(ctx, deliveriesOf(e), consumer.Mark{EventID: e.ID}); err != nil {
		k.Log.WarnContext(ctx, "deliveries of an event during an outage count", "event", e.ID, "error", err)
		return
	}
	p.counted = false
}

// IsGap reports whether an event before e has not been handled. A resubmitted event does not wait.
func (k *KeyProcessor) IsGap(e *consumer.Event) bool {
	return e.Resubmission == "" && consumer.Judge(k.last, e) == consumer.Gap
}

// IsFresh reports whether e is the next event of the key, in its history or another one.
func (k *KeyProcessor) IsFresh(e *consumer.Event) bool {
	v := consumer.Judge(k.last, e)
	return v == consumer.Fresh || v == consumer.Fork
}

// Record stores the mark of an event in the inbox. A resubmitted event moves the mark of its key only
// forward.
func (k *KeyProcessor) Record(ctx context.Context, e *consumer.Event) error {
	return k.record(ctx, e, "")
}

// record is Record with Mark.Parking; "" leaves that as it is.
func (k *KeyProcessor) record(ctx context.Context, e *consumer.Event, parking string) error {
	next := k.last.Next(e)
	next.Parking = cmp.Or(parking, next.Parking)
	moves := e.Resubmission == "" || e.Sequence > k.last.Sequence
	var err error
	if e.Resubmission != "" {
		err = k.Inbox.Record(ctx, e.InboxKey(), e.Mark())
	}
	if err == nil && moves {
		err = k.Inbox.Record(ctx, e.Key, next)
	}
	if err != nil {
		return fmt.Errorf("record event %s: %w", e.ID, err)
	}
	if moves {
		k.last = next
	}
	return nil
}
