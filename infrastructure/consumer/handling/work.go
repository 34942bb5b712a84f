package handling

import (
	"cmp"
	"context"
	"errors"
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

// Wait returns after d or when one of the contexts ends.
func Wait(ctx, other context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-other.Done():
	}
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
