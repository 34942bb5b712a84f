package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/domain/fault"
)

// Drained tells of a try to drain a gate.
type Drained struct {
	Key    string
	Sent   int   // events sent
	Differ int   // of these, how many were sent with other content than was parked
	Skip   bool  // one was left out
	Open   bool  // the gate is open now
	Err    error // why not
}

// drain is one try to drain a gate.
type drain struct {
	*Drainer
	acceptedBefore int // Drainer.accepted when the key could not be sent the last time
	report         Drained
	refused        error // why the intent was given up
	done           bool  // there is no further step
}

// drain works on a gate, step by step, until it is open or a step fails. It returns an
// error if the gate is to be tried again. accepted is that of the key's try before.
func (d *Drainer) drain(ctx context.Context, key string, accepted int) error {
	w := &drain{Drainer: d, acceptedBefore: accepted, report: Drained{Key: key}}
	var err error
	for err == nil && !w.done {
		err = d.ranges.Own(ctx, key, w.step)
	}
	w.report.Err = errors.Join(err, w.refused)
	if w.report.Sent > 0 || w.report.Skip || w.report.Open || w.report.Err != nil && !errors.Is(err, ErrNotOwned) {
		tell(ctx, d.opts.Drained, w.report)
	}
	return err
}

// step skips what is to be skipped, or sends the first events, or opens the gate if there
// are none. ctx is that of the ownership of the key's range.
func (w *drain) step(ctx context.Context) error {
	gate, err := w.store.Gate(ctx, w.report.Key)
	if fault.Is(err, fault.NotFound) || err == nil && gate.Wanted() == nil {
		w.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the gate of key %q: %w", w.report.Key, err)
	}
	intent, limit := *gate.Wanted(), w.opts.Batch
	if intent.Verb == VerbSkip {
		limit = 1
	}
	events, err := w.store.First(ctx, gate.Key, limit)
	switch {
	case err != nil:
		return fmt.Errorf("read parked events of key %q: %w", gate.Key, err)
	case intent.Verb == VerbSkip:
		return w.skip(ctx, gate, intent, events)
	case len(events) > 0:
		return w.send(ctx, gate, intent, events)
	}
	err = w.store.Open(ctx, gate)
	if fault.Is(err, fault.PreconditionFailed) { // events have come since
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the gate of key %q: %w", gate.Key, err)
	}
	w.report.Open, w.done = true, true
	return nil
}

// skip takes the first event away, with a record, and turns the intent into a retry.
func (w *drain) skip(ctx context.Context, gate Gate, intent Intent, first []ParkedEvent) error {
	if len(first) == 0 || first[0].ID != intent.Event {
		return w.giveUp(ctx, gate, Refuse("not_first", "event %q is not the first in line of key %q", intent.Event, gate.Key), nil)
	}
	retry := intent
	retry.Verb, retry.Event = VerbRetry, ""
	gate.Intent = &retry
	_, err := w.store.Remove(ctx, gate, first, &Skipped{Event: first[0], Intent: intent})
	if fault.Is(err, fault.PreconditionFailed) { // the gate has changed: look again
		return nil
	}
	if err != nil {
		return fmt.Errorf("skip event %q of key %q: %w", first[0].ID, gate.Key, err)
	}
	w.report.Skip = true
	return nil
}

// send publishes the first events of the line and takes away those that were accepted.
func (w *drain) send(ctx context.Context, gate Gate, intent Intent, events []ParkedEvent) error {
	messages, differ, failure := w.decode(ctx, intent, events)
	sent := len(messages)
	if sent > 0 {
		groups := []Group{{Key: gate.Key, Messages: messages}}
		if err := w.publisher.Publish(ctx, groups); err != nil {
			k := failedKeys(err, groups)[0]
			sent, failure = k.Sent, k.Err
		}
	}
	if sent > 0 {
		w.accepted += sent
		err := w.change(ctx, gate, func(g Gate) (Gate, error) { return w.store.Remove(ctx, g, events[:sent], nil) })
		if err != nil {
			return fmt.Errorf("remove sent events of key %q: %w", gate.Key, errors.Join(failure, err))
		}
		w.report.Sent += sent
		w.report.Differ += differ[sent]
	}
	// A refusal that does not tell may be the fault of the broker's set-up as long as nothing
	// was accepted since the try before. An operator who asked hears of it all the same.
	doubtful := gate.Intent == nil && w.accepted == w.acceptedBefore && mayBeTheBroker(failure)
	if ClassOf(failure) != Refused || doubtful {
		return failure // what is wanted stays; a later look tries again
	}
	return w.giveUp(ctx, gate, failure, &events[sent])
}

// notStored is the reason of an intent that the store cannot fulfil.
const notStored = "not_stored"

// decode reads events again, since an operator may have mended them, up to the first
// that cannot be sent. differ[n] is how many of the first n messages are others than were
// parked.
func (w *drain) decode(ctx context.Context, intent Intent, events []ParkedEvent) (messages []Message, differ []int, failure error) {
	differ = []int{0}
	for i := range events {
		e := &events[i]
		document := e.Document
		if intent.FromStore {
			var err error
			if document, err = w.stored(ctx, e); err != nil {
				return messages, differ, err
			}
		}
		m, isEvent, err := w.decoder.Decode(document)
		switch {
		case err != nil:
			return messages, differ, err
		case !isEvent:
			return messages, differ, Refuse("not_an_event", "document %q is no event", e.ID)
		case m.ID != e.ID || m.Key != e.Key:
			return messages, differ, Refuse("identity_changed", "document %q of key %q became %q of key %q", e.ID, e.Key, m.ID, m.Key)
		}
		messages, differ = append(messages, m), append(differ, differ[i])
		if intent.FromStore && !SameContent(w.decoder, e.Document, document) {
			differ[i+1]++
		}
	}
	return messages, differ, nil
}

// stored reads the document of e where it was committed.
func (w *drain) stored(ctx context.Context, e *ParkedEvent) ([]byte, error) {
	if w.opts.Stored == nil {
		return nil, Refuse(notStored, "this relay cannot read events from the store")
	}
	document, err := w.opts.Stored.Event(ctx, e.Key, e.ID)
	if fault.Is(err, fault.NotFound) {
		return nil, Refuse(notStored, "event %q of key %q is no longer in the store, it has expired or was removed: retry without the store sends it as it was parked", e.ID, e.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("read event %q of key %q from the store: %w", e.ID, e.Key, err)
	}
	return document, nil
}

// giveUp takes the intent off the gate and notes why; the gate stays closed. If event was
// refused, the key waits for an operator from now on.
func (w *drain) giveUp(ctx context.Context, gate Gate, reason error, event *ParkedEvent) error {
	given, now := gate.Intent, w.opts.Now().UTC().Round(time.Millisecond)
	err := w.change(ctx, gate, func(g Gate) (Gate, error) {
		if g.Intent != nil && given != nil && *g.Intent == *given {
			g.Intent = nil // an operator's newer one stays
		}
		if g.Closing.Auto && event != nil && ReasonOf(reason) != notStored {
			g.Closing = Closing{Event: event.ID, Reason: ReasonOf(reason), Error: reason.Error(), At: now}
		}
		g.Attempts++
		g.Error, g.TriedAt = reason.Error(), now
		return w.store.Update(ctx, g)
	})
	if err != nil {
		return errors.Join(reason, fmt.Errorf("take the intent off key %q: %w", gate.Key, err))
	}
	w.refused, w.done = reason, true
	return nil
}

// change stores gate as store leaves it. If it has changed in the meantime, since events have
// come behind it or another intent, it tries again on the gate as it is now.
func (w *drain) change(ctx context.Context, gate Gate, store func(Gate) (Gate, error)) error {
	for {
		_, err := store(gate)
		if !fault.Is(err, fault.PreconditionFailed) {
			return err
		}
		if gate, err = w.store.Gate(ctx, gate.Key); err != nil {
			return err
		}
	}
}
