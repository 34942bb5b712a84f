package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"feedbox/domain/fault"
)

// draining is one try to drain a gate.
type draining struct {
	d      *Drainer
	gate   Gate      // as stored
	until  time.Time // the claim is trusted until then
	report Drained
}

// claim takes the gate, or renews the claim on it.
func (w *draining) claim(ctx context.Context) error {
	return w.change(ctx, func(g Gate) (Gate, error) { return w.d.lot.Update(ctx, g) })
}

// change stores the gate with its claim renewed, or as store leaves it. If only events
// have come behind the gate in the meantime, it tries again on the gate as it is now.
func (w *draining) change(ctx context.Context, store func(Gate) (Gate, error)) error {
	for {
		began := w.d.opts.Now()
		g := w.gate
		beat := int64(1)
		if g.Claim != nil {
			beat = g.Claim.Beat + 1
		}
		g.Claim = &Claim{Owner: w.d.opts.Owner, Token: w.d.opts.Token, Beat: beat}
		stored, err := store(g)
		if err == nil {
			w.gate, w.until = stored, began.Add(w.d.opts.ClaimExpiry*4/5)
			return nil
		}
		if !fault.Is(err, fault.PreconditionFailed) {
			return err
		}
		now, readErr := w.d.lot.Gate(ctx, w.gate.Key)
		if readErr != nil {
			return readErr
		}
		if !sameClaim(now.Claim, w.gate.Claim) || now.Intent == nil || ctx.Err() != nil {
			return err
		}
		w.gate = now
	}
}

func sameClaim(a, b *Claim) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// run skips what is to be skipped, sends the rest and opens the gate.
func (w *draining) run(ctx context.Context) error {
	if w.gate.Intent != nil && w.gate.Intent.Verb == VerbSkip {
		if err := w.skip(ctx); err != nil {
			return err
		}
	}
	for {
		events, err := w.d.lot.First(ctx, w.gate.Key, w.d.opts.Batch)
		if err != nil {
			return fmt.Errorf("read parked events of key %q: %w", w.gate.Key, err)
		}
		if len(events) > 0 {
			if err := w.send(ctx, events); err != nil {
				return err
			}
			continue
		}
		err = w.d.lot.Open(ctx, w.gate)
		switch {
		case err == nil:
			w.report.Open = true
			return nil
		case fault.Is(err, fault.PreconditionFailed): // events have come since
			if err := w.claim(ctx); err != nil {
				return fmt.Errorf("renew the claim on key %q: %w", w.gate.Key, err)
			}
		default:
			return fmt.Errorf("open the gate of key %q: %w", w.gate.Key, err)
		}
	}
}

// skip takes the first event away, with a record, and turns the intent into a retry.
func (w *draining) skip(ctx context.Context) error {
	first, err := w.d.lot.First(ctx, w.gate.Key, 1)
	if err != nil {
		return fmt.Errorf("read parked events of key %q: %w", w.gate.Key, err)
	}
	intent := *w.gate.Intent
	if len(first) == 0 || intent.Event != "" && first[0].ID != intent.Event {
		return w.giveUp(ctx, Refuse("not_first", "event %q is not the first in line of key %q", intent.Event, w.gate.Key))
	}
	err = w.change(ctx, func(g Gate) (Gate, error) {
		g.Intent = &Intent{Verb: VerbRetry, By: intent.By, Note: intent.Note, At: intent.At}
		return w.d.lot.Remove(ctx, g, []string{first[0].ID}, &Skipped{Event: first[0], Intent: intent})
	})
	if err != nil {
		return fmt.Errorf("skip event %q of key %q: %w", first[0].ID, w.gate.Key, err)
	}
	w.report.Skip = true
	return nil
}

// send publishes the first events of the line and takes away those that were accepted.
func (w *draining) send(ctx context.Context, events []ParkedEvent) error {
	messages, ids, refusal := w.decode(events)
	var failure error
	if len(messages) > 0 {
		trusted, cancel := w.trusted(ctx)
		err := w.d.publisher.Publish(trusted, []Group{{Key: w.gate.Key, Messages: messages}})
		cancel()
		if err != nil {
			k := failedKeys(err, make([]Group, 1))[0]
			ids, refusal, failure = ids[:k.Sent], nil, k.Err
		}
	}
	if len(ids) > 0 {
		err := w.change(ctx, func(g Gate) (Gate, error) { return w.d.lot.Remove(ctx, g, ids, nil) })
		if err != nil {
			return fmt.Errorf("remove sent events of key %q: %w", w.gate.Key, err)
		}
		w.report.Sent += len(ids)
	}
	failure = errors.Join(failure, refusal)
	if failure == nil {
		return nil
	}
	if ClassOf(failure) == Refused {
		return w.giveUp(ctx, failure)
	}
	return failure // the intent stays; a later look tries again
}

// decode reads events again, since an operator may have mended them, up to the first
// that still cannot be sent.
func (w *draining) decode(events []ParkedEvent) (messages []Message, ids []string, refusal error) {
	for i := range events {
		e := &events[i]
		m, isEvent, err := w.d.decoder.Decode(e.Document)
		switch {
		case err != nil:
			return messages, ids, err
		case !isEvent:
			return messages, ids, Refuse("not_an_event", "document %q is no event", e.ID)
		case m.ID != e.ID || m.Key != e.Key:
			return messages, ids, Refuse("identity_changed", "document %q of key %q became %q of key %q", e.ID, e.Key, m.ID, m.Key)
		}
		m.LSN, m.Index = e.LSN, i
		messages, ids = append(messages, m), append(ids, e.ID)
	}
	return messages, ids, nil
}

// trusted returns a context that ends with the claim.
func (w *draining) trusted(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.until.Sub(w.d.opts.Now()))
}

// giveUp takes the intent off the gate and notes why; the gate stays closed.
func (w *draining) giveUp(ctx context.Context, reason error) error {
	err := w.change(ctx, func(g Gate) (Gate, error) {
		g.Intent, g.Claim = nil, nil
		g.Attempts++
		g.Error = reason.Error()
		g.TriedAt = w.d.opts.Now().UTC().Round(time.Millisecond)
		return w.d.lot.Update(ctx, g)
	})
	if err != nil {
		return errors.Join(reason, fmt.Errorf("take the intent off key %q: %w", w.gate.Key, err))
	}
	return reason
}
