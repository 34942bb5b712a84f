package handling

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/consumer"
)

// Runner calls a handler. It holds the settings that all kits have: retries, drain, observer, log,
// metrics and spans.
type Runner struct {
	Source  Source
	Advise  func(err error) Advice // on an error of the broker; no Reason: unknown
	Handler consumer.Handler
	// RetryDelay is the pause after the first failure of an event; it doubles with each further
	// failure up to RetryDelayMax.
	RetryDelay, RetryDelayMax time.Duration
	DrainTimeout              time.Duration // how long handlers may run after cancellation
	Observe                   func(context.Context, consumer.Outcome)
	Log                       *slog.Logger
	Meters                    metric.MeterProvider
	Tracers                   trace.TracerProvider

	telemetry *telemetry
}

// Init sets defaults and reports invalid settings.
func (r *Runner) Init() error {
	r.RetryDelay = cmp.Or(r.RetryDelay, time.Second)
	r.RetryDelayMax = cmp.Or(r.RetryDelayMax, 30*time.Second)
	r.DrainTimeout = cmp.Or(r.DrainTimeout, 20*time.Second)
	r.Log = slog.New(newThrottle(cmp.Or(r.Log, slog.Default()).Handler()))
	observe := r.Observe
	r.Observe = func(ctx context.Context, o consumer.Outcome) {
		r.telemetry.count(ctx, &o)
		r.logOutcome(ctx, &o)
		if observe != nil {
			observe(ctx, o)
		}
	}
	var err error
	r.telemetry, err = newTelemetry(r.Source, r.Meters, r.Tracers)
	errs := []error{err}
	if r.Handler == nil {
		errs = append(errs, errors.New("handler is nil"))
	}
	if r.RetryDelay < 0 || r.RetryDelayMax < r.RetryDelay || r.DrainTimeout < 0 {
		errs = append(errs, errors.New("times must be positive, RetryDelayMax not below RetryDelay"))
	}
	return errors.Join(errs...)
}

// Handle calls the handler in a span; a panic becomes an error.
func (r *Runner) Handle(ctx context.Context, e *consumer.Event) (err error) {
	began := time.Now()
	ctx, span := r.telemetry.start(ctx, e)
	defer func() {
		if value := recover(); value != nil {
			err = &consumer.PanicError{Value: value}
		}
		r.telemetry.finish(ctx, span, began, err)
	}()
	return r.Handler(ctx, e)
}

// Backoff returns the pause after n consecutive failures. It has a jitter of 20 %, because consumers
// that failed together would otherwise retry together.
func (r *Runner) Backoff(n int) time.Duration {
	d := r.RetryDelay
	for ; n > 1 && d < r.RetryDelayMax; n-- {
		d *= 2
	}
	return time.Duration(float64(min(d, r.RetryDelayMax)) * (0.8 + 0.4*rand.Float64()))
}

// Wait blocks until d has passed or one of the contexts has ended.
func Wait(ctx, other context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-other.Done():
	}
}

// Drain blocks until ctx has ended and then until done is closed. After DrainTimeout it cancels the
// context of the handlers.
func (r *Runner) Drain(ctx context.Context, done <-chan struct{}, cancel context.CancelCauseFunc) {
	<-ctx.Done()
	timer := time.NewTimer(r.DrainTimeout)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel(consumer.ErrDrainTimeout)
		<-done
	case <-done:
	}
}

// IsUnavailable reports whether a handler's error says nothing about the event.
func IsUnavailable(err error) bool {
	_, ok := errors.AsType[*consumer.UnavailableError](err)
	return ok && !IsFinal(err)
}

// IsFinal reports whether a handler's error dead-letters or defers its event, so that the event is
// not retried.
func IsFinal(err error) bool {
	_, dead := errors.AsType[*consumer.DeadLetterError](err)
	return dead || errors.Is(err, consumer.Defer())
}
