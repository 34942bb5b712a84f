// Package handling is what the consumer kits have in common behind their handlers: the
// decisions between the inbox, the handler and another try.
package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"feedbox/infrastructure/consumer"
)

// Work is what is done with events.
type Work struct {
	Handler consumer.Handler
	// RetryDelay is the pause after the first failure of an event; it doubles with each
	// further one up to RetryDelayMax.
	RetryDelay, RetryDelayMax time.Duration
	DrainTimeout              time.Duration // how long handlers may go on after cancellation
	Observe                   func(context.Context, consumer.Outcome)
	Log                       *slog.Logger
}

// Complete sets defaults and reports what is wrong.
func (w *Work) Complete() error {
	w.RetryDelay = cmp.Or(w.RetryDelay, time.Second)
	w.RetryDelayMax = cmp.Or(w.RetryDelayMax, 30*time.Second)
	w.DrainTimeout = cmp.Or(w.DrainTimeout, 20*time.Second)
	w.Log = cmp.Or(w.Log, slog.New(slog.DiscardHandler))
	if w.Observe == nil {
		w.Observe = func(context.Context, consumer.Outcome) {}
	}
	var errs []error
	if w.Handler == nil {
		errs = append(errs, errors.New("handler is nil"))
	}
	if w.RetryDelay < 0 || w.RetryDelayMax < w.RetryDelay || w.DrainTimeout < 0 {
		errs = append(errs, errors.New("times must be positive, RetryDelayMax not below RetryDelay"))
	}
	return errors.Join(errs...)
}

// Handle calls the handler; a panic becomes an error.
func (w *Work) Handle(ctx context.Context, e *consumer.Event) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &consumer.PanicError{Value: r}
		}
	}()
	return w.Handler(ctx, e)
}

// Backoff is the pause after the n-th failure in a row, from 1, with some jitter.
func (w *Work) Backoff(n int) time.Duration {
	d := w.RetryDelay
	for ; n > 1 && d < w.RetryDelayMax; n-- {
		d *= 2
	}
	return time.Duration(float64(min(d, w.RetryDelayMax)) * (0.8 + 0.4*rand.Float64()))
}

// Drain waits for work that ends soon after ctx has ended; after the drain's time it ends
// the context of the handlers.
func (w *Work) Drain(ctx context.Context, done <-chan struct{}, cancel context.CancelCauseFunc) {
	<-ctx.Done()
	timer := time.NewTimer(w.DrainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(consumer.ErrDrainTimeout)
		<-done
	case <-done:
	}
}

// SetAside reports whether an error of a handler ends its event.
func SetAside(err error) bool {
	_, dead := errors.AsType[*consumer.DeadLetterError](err)
	return dead || errors.Is(err, consumer.Defer())
}

// Key is the work on one key, for its one holder.
type Key struct {
	*Work
	Inbox consumer.Inbox
	// GapTries is how often an event behind a gap waits before it is handled all the same.
	GapTries int

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
// Without an error there the event is marked in the inbox and can be settled; so can one that
// was set aside.
func (k *Key) Apply(ctx context.Context, out *consumer.Outcome) {
	e := out.Event
	switch out.Verdict = consumer.Judge(k.last, e); out.Verdict {
	case consumer.Duplicate, consumer.Stale:
		out.Action = consumer.Dropped
		return
	case consumer.Gap:
		out.Missing = e.Sequence - k.last.Sequence - 1
		if e.DeliveryCount <= k.GapTries {
			out.Err = errWaitForMissing
			return
		}
	case consumer.Fresh:
	}
	if out.Err = k.Handle(ctx, e); out.Err != nil && !SetAside(out.Err) {
		return
	}
	if err := k.Inbox.Record(ctx, e.Key, e.Mark()); err != nil {
		out.Err = fmt.Errorf("record event %s: %w", e.ID, err)
		return
	}
	k.last = e.Mark()
}
