package subscriber

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/consumer"
)

// SessionOptions are the options of NewSessionProcessor. Zero means the default.
type SessionOptions struct {
	// Sessions is the maximum number of sessions handled at a time. As many more may be held idle.
	// Default 8.
	Sessions int
	// Prefetch is the number of events of a session that the broker sends in advance. Default 16.
	Prefetch int
	// SessionIdle is how long a session without new events is held. It is closed earlier if more
	// than Sessions are idle. Default 1 s.
	SessionIdle time.Duration
	// SessionMax is the time after which a busy session is closed, so that other sessions are handled.
	// Default 1 min; negative: no limit.
	SessionMax time.Duration

	// Inbox detects duplicates. Default: consumer.NewMemoryInbox(0).
	Inbox consumer.Inbox
	// Park is that of consumer.Options: a refused event is parked with the later ones of its session, and
	// not dead-lettered. Default: dead-lettered.
	Park consumer.ParkedStore
	// ParkedPoll is that of consumer.Options. Default 5 s.
	ParkedPoll time.Duration
	// Attempts is the number of failed deliveries after which Park parks an event. It must not be above
	// MaxDeliveryCount of the source, which dead-letters an event after as many. Default 10, which is
	// also the default of MaxDeliveryCount; not used without Park.
	Attempts int
	// Policies are those of consumer.Options.
	Policies map[string]consumer.Policy
	// GapDeliveries is how often an event after a gap waits for the missing event, for RetryDelay and
	// then twice that and so on, before it is handled without it. The session stays locked. Default 3;
	// negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause of a session before a failed event is abandoned; it doubles with each
	// delivery of the event up to RetryDelayMax. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may run after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called with the outcome of every delivery, in the order of its session. It
	// must return quickly and be safe for concurrent use.
	Observe func(ctx context.Context, o consumer.Outcome)
	// Logger, Meters and Tracers are those of consumer.Options. Defaults: slog.Default, none, none.
	Logger  *slog.Logger
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
}

// Options are the options of NewProcessor. Zero means the default.
type Options struct {
	// Concurrency is the number of events handled in parallel. Default 8.
	Concurrency int
	// Prefetch is the number of events that the broker sends in advance, at least Concurrency.
	// Default: twice Concurrency.
	Prefetch int

	// RetryDelay is the pause before a failed event is abandoned; it doubles with each delivery of the
	// event up to RetryDelayMax. Other events are handled meanwhile. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may run after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Policies are those of consumer.Options. Without sessions nothing is parked.
	Policies map[string]consumer.Policy

	// Observe, if set, is called with the outcome of every delivery. It must return quickly and be
	// safe for concurrent use.
	Observe func(ctx context.Context, o consumer.Outcome)
	// Logger, Meters and Tracers are those of consumer.Options. Defaults: slog.Default, none, none.
	Logger  *slog.Logger
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
}

func (o *SessionOptions) complete() error {
	o.Sessions = cmp.Or(o.Sessions, 8)
	o.Prefetch = cmp.Or(o.Prefetch, 16)
	o.SessionIdle = cmp.Or(o.SessionIdle, time.Second)
	o.SessionMax = cmp.Or(o.SessionMax, time.Minute)
	o.GapDeliveries = cmp.Or(o.GapDeliveries, 3)
	o.Attempts = cmp.Or(o.Attempts, 10)
	if o.Inbox == nil {
		o.Inbox = consumer.NewMemoryInbox(0)
	}
	var errs []error
	if o.Sessions < 0 || o.Prefetch < 0 || o.Attempts < 0 {
		errs = append(errs, errors.New("options Sessions, Prefetch and Attempts must be positive"))
	}
	if o.SessionIdle < 0 {
		errs = append(errs, errors.New("option SessionIdle must be positive"))
	}
	return errors.Join(errs...)
}

func (o *Options) complete() error {
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	o.Prefetch = cmp.Or(o.Prefetch, 2*o.Concurrency)
	if o.Concurrency < 0 || o.Prefetch < o.Concurrency {
		return errors.New("option Concurrency must be positive, and Prefetch not below it")
	}
	return nil
}
