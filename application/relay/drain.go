package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/domain/fault"
)

// DrainReport is the result of one attempt to drain a gate.
type DrainReport struct {
	Key     string
	Sent    int   // events sent
	Changed int   // of the sent events, those with other content than was parked
	Skipped bool  // an event was skipped
	Opened  bool  // the gate is open now
	Missing int64 // parked events of the opened gate that are not in the store and were not sent
	Err     error // nil if open
}

// drain is one attempt to drain a gate.
type drain struct {
	*Drainer
	report  DrainReport
	refused error // why the intent was dropped
	done    bool  // no step follows
}

// drain runs steps until the gate is open, a step fails, or the turn of the key is over. It
// returns the number of sent events, whether steps are left, and an error if the gate should be
// retried after a pause.
func (d *Drainer) drain(ctx context.Context, key string, turn time.Time) (sent int, left bool, err error) {
	w := &drain{Drainer: d, report: DrainReport{Key: key}}
	for first := true; err == nil && !w.done && (first || d.now().Before(turn)); first = false {
		err = d.ranges.Own(ctx, key, w.step)
	}
	w.report.Err = errors.Join(err, w.refused)
	quiet := w.report.Err == nil || errors.Is(err, ErrNotOwned) || d.relay.breakerOf(key).paused()
	if w.report.Sent > 0 || w.report.Skipped || w.report.Opened || !quiet {
		notify(ctx, d.opts.Drained, w.report)
	}
	return w.report.Sent, err == nil && !w.done, err
}

// Drain drains one key at once, for a caller that owns it, and returns after the gate was opened, a
// step failed, or the time of Poll. It is safe for concurrent use with different keys.
func (d *Drainer) Drain(ctx context.Context, key string) error {
	if !d.relay.breakerOf(key).mayProbe() {
		return nil // a later poll finds the intent
	}
	_, _, err := d.drain(ctx, key, d.now().Add(d.opts.Poll))
	return err
}

// Closed returns what closed the gate of key, or nil if it is open.
func (d *Drainer) Closed(ctx context.Context, key string) (*Closing, error) {
	g, err := d.store.Gate(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return nil, nil //nolint:nilnil // the gate is open
	}
	return &g.Closing, err
}

// step skips the first event if an operator wants that, or sends the first events, or opens
// the gate if there are none. ctx ends with the ownership of the key's range.
func (w *drain) step(ctx context.Context) error {
	gate, err := w.store.Gate(ctx, w.report.Key)
	if fault.Is(err, fault.NotFound) || err == nil && gate.EffectiveIntent() == nil {
		w.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the gate of key %q: %w", w.report.Key, err)
	}
	intent, limit := *gate.EffectiveIntent(), w.opts.Batch
	if intent.Verb == VerbSkip {
		limit = 1
	}
	events, err := w.store.First(ctx, gate.Key, limit, stepBytes)
	switch {
	case err != nil:
		return fmt.Errorf("read parked events of key %q: %w", gate.Key, err)
	case intent.Verb == VerbSkip:
		return w.skip(ctx, gate, intent, events)
	case len(events) > 0:
		return w.send(ctx, gate, intent, events)
	}
	err = w.store.Open(ctx, gate)
	if fault.Is(err, fault.PreconditionFailed) { // an event was parked since
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the gate of key %q: %w", gate.Key, err)
	}
	// It opens although events are missing: what is missing cannot be sent, and later events of the key would wait for it.
	w.report.Opened, w.report.Missing, w.done = true, max(0, gate.Events), true
	return nil
}

// skip removes the first event, keeps a record of it, and turns the intent into a retry.
func (w *drain) skip(ctx context.Context, gate Gate, intent Intent, first []ParkedEvent) error {
	if len(first) == 0 || first[0].ID != intent.Event {
		return w.dropIntent(ctx, gate, Refuse("not_first", "event %q is not the first parked event of key %q", intent.Event, gate.Key), nil)
	}
	retry := intent
	retry.Verb, retry.Event = VerbRetry, ""
	gate.Intent = &retry
	_, err := w.store.Remove(ctx, gate, first, &Skipped{Event: first[0], Intent: intent})
	if fault.Is(err, fault.PreconditionFailed) { // the gate has changed: the next step reads it again
		return nil
	}
	if err != nil {
		return fmt.Errorf("skip event %q of key %q: %w", first[0].ID, gate.Key, err)
	}
	w.report.Skipped = true
	return nil
}

// send publishes the first parked events and removes the accepted ones.
func (w *drain) send(ctx context.Context, gate Gate, intent Intent, events []ParkedEvent) error {
	messages, changed, failure := w.decode(ctx, intent, events)
	k := w.relay.sendKey(ctx, gate.Key, messages)
	failure = cmp.Or(k.err, failure)
	if k.sent > 0 {
		err := w.change(ctx, gate, func(g Gate) (Gate, error) { return w.store.Remove(ctx, g, events[:k.sent], nil) })
		if err != nil {
			return fmt.Errorf("remove sent events of key %q: %w", gate.Key, errors.Join(failure, err))
		}
		w.report.Sent += k.sent
		w.report.Changed += changed[k.sent]
	}
	// The breaker may have no evidence that an ambiguous refusal is the message's fault. An
	// operator's intent is dropped anyway, because the operator is waiting for the result.
	suspect := gate.Intent == nil && !k.blamed && mayBeBrokerFault(failure)
	if ClassOf(failure) != Refused || suspect {
		return failure // the intent stays, and a later poll retries it
	}
	return w.dropIntent(ctx, gate, failure, &events[k.sent])
}

// notStored is the reason for dropping an intent whose event is not in the store.
const notStored = "not_stored"

// decode decodes events up to the first that cannot be sent. It decodes them again because an
// operator may have edited them. changed[n] is the number of the first n messages that differ
// from the parked ones.
func (w *drain) decode(ctx context.Context, intent Intent, events []ParkedEvent) (messages []Message, changed []int, failure error) {
	changed = []int{0}
	for i := range events {
		e := &events[i]
		document := e.Document
		if intent.FromStore {
			var err error
			if document, err = w.stored(ctx, e); err != nil {
				return messages, changed, err
			}
		}
		m, isEvent, err := w.relay.decoder.Decode(document)
		switch {
		case err != nil:
			return messages, changed, err
		case !isEvent:
			return messages, changed, Refuse("not_an_event", "document %q is not an event", e.ID)
		case m.ID != e.ID || m.Key != e.Key:
			return messages, changed, Refuse("identity_changed", "document %q of key %q now has id %q and key %q", e.ID, e.Key, m.ID, m.Key)
		}
		messages, changed = append(messages, m), append(changed, changed[i])
		if intent.FromStore && !SameContent(w.relay.decoder, e.Document, document) {
			changed[i+1]++
		}
	}
	return messages, changed, nil
}

// stored reads the committed document of e.
func (w *drain) stored(ctx context.Context, e *ParkedEvent) ([]byte, error) {
	if w.opts.Stored == nil {
		return nil, Refuse(notStored, "this relay cannot read events from the store")
	}
	document, err := w.opts.Stored.Event(ctx, e.Key, e.ID)
	if fault.Is(err, fault.NotFound) {
		return nil, Refuse(notStored, "event %q of key %q expired or was removed from the store; a retry without --from-store sends it as it was parked", e.ID, e.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("read event %q of key %q from the store: %w", e.ID, e.Key, err)
	}
	return document, nil
}

// dropIntent removes the intent from the gate and stores the reason; the gate stays closed. If
// event was refused, the key waits for an operator from now on.
func (w *drain) dropIntent(ctx context.Context, gate Gate, reason error, event *ParkedEvent) error {
	dropped, now := gate.Intent, w.now().UTC().Round(time.Millisecond)
	err := w.change(ctx, gate, func(g Gate) (Gate, error) {
		if g.Intent != nil && dropped != nil && *g.Intent == *dropped {
			g.Intent = nil // a newer intent stays
		}
		if g.Closing.Auto && event != nil && ReasonOf(reason) != notStored {
			g.Closing = Closing{Event: event.ID, Reason: ReasonOf(reason), Error: reason.Error(), At: now}
		}
		g.Attempts++
		g.Error, g.TriedAt = reason.Error(), now
		return w.store.Update(ctx, g)
	})
	if err != nil {
		return errors.Join(reason, fmt.Errorf("remove the intent from the gate of key %q: %w", gate.Key, err))
	}
	w.refused, w.done = reason, true
	return nil
}

// change calls store with the gate. If the gate has changed meanwhile, by a newly parked event or
// another intent, it reads the gate and calls store again.
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
