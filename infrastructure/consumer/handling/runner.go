package handling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	Policies                  map[string]consumer.Policy // by action; "": all others
	DrainTimeout              time.Duration              // how long handlers may run after cancellation
	Observe                   func(context.Context, consumer.Outcome)
	Log                       *slog.Logger
	Meters                    metric.MeterProvider
	Tracers                   trace.TracerProvider

	telemetry *telemetry
	breakers  breakers
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
		if observe == nil {
			return
		}
		if err := recovered(func() error { observe(ctx, o); return nil }); err != nil {
			r.Log.ErrorContext(ctx, "observer failed", "error", err)
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
	return errors.Join(append(errs, CheckPolicies(r.Policies))...)
}

// CheckPolicies reports invalid members of policies.
func CheckPolicies(policies map[string]consumer.Policy) error {
	var errs []error
	for action, p := range policies {
		if p.Timeout < 0 || p.RetryDelay < 0 || p.RetryDelayMax < 0 || p.Refused > consumer.Drop {
			errs = append(errs, fmt.Errorf("policy of %q: times must be positive, and Refused one of the constants", action))
		}
	}
	return errors.Join(errs...)
}

// Policy returns the policy of the action of e.
func (r *Runner) Policy(e *consumer.Event) consumer.Policy {
	if p, ok := r.Policies[e.Action]; ok {
		return p
	}
	return r.Policies[""]
}

// Handle calls the handler unless the policy of the event prevents that; see IsUntried.
func (r *Runner) Handle(ctx context.Context, e *consumer.Event) error {
	return r.handleAfter(ctx, e, func() error { return nil })
}

// handleAfter calls before, and then the handler unless that failed. It calls neither of them while another
// event is tried first.
func (r *Runner) handleAfter(ctx context.Context, e *consumer.Event, before func() error) error {
	p := r.Policy(e)
	probe, err := r.breakers.admit(p.Dependency)
	if err != nil {
		return err
	}
	if err = before(); err != nil {
		r.breakers.withdraw(p.Dependency, probe)
		return err
	}
	err = r.call(ctx, e, &p)
	r.breakers.report(ctx, r.Log, p.Dependency, probe, err, func(n int) time.Duration { return r.BackoffOf(e, n) })
	return err
}

// call calls the handler in a span, and the policy classifies its error.
func (r *Runner) call(ctx context.Context, e *consumer.Event, p *consumer.Policy) (err error) {
	began := time.Now()
	ctx, span := r.telemetry.start(ctx, e)
	defer func() { r.telemetry.finish(ctx, span, began, err) }()
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.Timeout, consumer.ErrTimeout)
		defer cancel()
	}
	failure := recovered(func() error { return r.Handler(ctx, e) })
	if failure != nil && errors.Is(context.Cause(ctx), consumer.ErrTimeout) {
		failure = fmt.Errorf("%w: %w", consumer.ErrTimeout, failure)
	}
	// A panic of the policy must not end the process either, because the broker would redeliver the event to the
	// next one.
	panicked := recovered(func() error {
		failure = classified(failure, p)
		return nil
	})
	if panicked != nil {
		return fmt.Errorf("%w (classifying %w)", panicked, failure)
	}
	return failure
}

// classified returns the error of a handler as its policy classifies it.
func classified(err error, p *consumer.Policy) error {
	switch {
	case err == nil || IsFinal(err) || IsUnavailable(err):
		return err
	case p.IsUnavailable != nil && p.IsUnavailable(err):
		return consumer.Unavailable(err)
	case p.IsRefused != nil && p.IsRefused(err):
		return consumer.DeadLetter(consumer.ReasonRefused, err)
	}
	return err
}

// recovered calls f, a function of the user. A panic becomes an error.
func recovered(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &consumer.PanicError{Value: value}
		}
	}()
	return f()
}

// Refusal returns why an event is refused after an error of the handler, or nil if it is retried, or was handled
// without an error. failures is the number of attempts, of which the last one has err, and attempts the limit of
// the kit, at most 0 for none.
func (r *Runner) Refusal(e *consumer.Event, err error, failures, attempts int) *consumer.DeadLetterError {
	if err == nil {
		return nil
	}
	if reason, ok := errors.AsType[*consumer.DeadLetterError](err); ok {
		return reason
	}
	if attempts = cmp.Or(r.Policy(e).Attempts, attempts); attempts > 0 && failures >= attempts && !IsFinal(err) {
		return &consumer.DeadLetterError{Reason: consumer.ReasonAttempts, Err: err}
	}
	return nil
}

// Drops reports whether e is completed, and nothing keeps it, after it was refused.
func (r *Runner) Drops(e *consumer.Event) bool { return r.Policy(e).Refused == consumer.Drop }

// BackoffOf is Backoff with the times of the policy of e.
func (r *Runner) BackoffOf(e *consumer.Event, n int) time.Duration {
	p := r.Policy(e)
	first := cmp.Or(p.RetryDelay, r.RetryDelay)
	return backoff(n, first, max(first, cmp.Or(p.RetryDelayMax, r.RetryDelayMax)))
}

// Backoff returns the pause after n consecutive failures. It has a jitter of 20 %, because consumers
// that failed together would otherwise retry together.
func (r *Runner) Backoff(n int) time.Duration { return backoff(n, r.RetryDelay, r.RetryDelayMax) }

func backoff(n int, d, most time.Duration) time.Duration {
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	return time.Duration(float64(min(d, most)) * (0.8 + 0.4*rand.Float64()))
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
