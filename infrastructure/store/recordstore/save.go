package recordstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
)

// CodeOutcomeUnknown is the code of an Unavailable fault after which the change may be
// stored or not. A client finds out by reading, or by repeating the request under its
// idempotency key.
const CodeOutcomeUnknown = "outcome_unknown"

// save stores a change and reports whether what it leaves is still the current state.
//
// How an outcome becomes certain: each attempt stores the same.
//
//	          ┌── no answer: wait, again ────────────────────────┐
//	          ▼                                                  │
//	Save, one attempt ──done──▶ done                             │
//	     │                                                       │
//	     ├── not now (deadlock, shutting down): wait, again ─────┤
//	     ├── refused, and an earlier attempt had no answer:      │
//	     │      read back: our event or note is there ──▶ done   │
//	     │                 no answer ────────────────────────────┘
//	     └── refused otherwise ──▶ the fault: nothing is or will be stored
//
// The last line holds also for an attempt that is still on its way when a later one is
// refused. What refuses the later one, another version or a taken id, refuses the earlier
// one too: versions never come back. And if a later attempt succeeds, an earlier one that
// arrives afterwards finds another version.
func (w *UnitOfWork[A]) save(ctx context.Context, c *Change) (current bool, err error) {
	unknown := false // some attempt may have stored it
	for attempt := 1; ; attempt++ {
		err := w.attempt(ctx, c)
		if err == nil {
			return true, nil
		}
		refusal := w.refusal(err)
		if refusal != nil && unknown {
			own, current, backErr := w.of.store.Saved(ctx, c)
			if backErr == nil && own {
				return current, nil
			}
			if err = backErr; err == nil {
				return false, refusal
			}
		} else if refusal != nil {
			return false, w.vanished(ctx, refusal)
		}
		unknown = unknown || w.of.store.Ambiguous(err)
		if attempt < w.of.options.Attempts && (unknown || fault.Is(err, fault.Unavailable)) && Pause(ctx, w.of.options.Backoff<<(attempt-1)) == nil {
			continue
		}
		err = fmt.Errorf("save %s %s with %d events: %w", w.of.kind.Noun, w.id, len(c.Events), err)
		if unknown {
			return false, fault.Wrap(fault.Unavailable, CodeOutcomeUnknown, "the store did not answer; the change may have been made", err)
		}
		return false, err
	}
}

// attempt saves once.
func (w *UnitOfWork[A]) attempt(ctx context.Context, c *Change) error {
	if w.of.options.AttemptTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.of.options.AttemptTimeout)
		defer cancel()
	}
	return w.of.store.Save(ctx, c)
}

// refusal is the fault for an attempt that what is stored has refused, nil for another
// failure.
func (w *UnitOfWork[A]) refusal(err error) error {
	switch {
	case errors.Is(err, ErrExists) && w.read.Version == 0:
		return fault.Wrap(fault.Conflict, "", "there is a "+w.of.kind.Noun+" of that id already", err)
	case errors.Is(err, ErrExists):
		return fault.Wrap(fault.Conflict, "", "what is to be stored is there already", err)
	case errors.Is(err, ErrNoted):
		return fault.Wrap(fault.Conflict, "", "the request was answered before", err)
	case errors.Is(err, ErrChanged):
		return w.of.kind.ChangedByAnother()
	}
	return nil
}

// vanished tells an aggregate that is there no more from one that was changed.
func (w *UnitOfWork[A]) vanished(ctx context.Context, refusal error) error {
	if fault.Is(refusal, fault.PreconditionFailed) {
		if _, _, err := w.of.read(ctx, w.id); fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return refusal
}

// Pause waits between a half and all of wait, and fails when ctx ends first.
func Pause(ctx context.Context, wait time.Duration) error {
	if wait > 0 {
		wait = wait/2 + rand.N(wait/2+1)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
