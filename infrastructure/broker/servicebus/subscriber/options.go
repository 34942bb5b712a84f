package subscriber

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"feedbox/infrastructure/consumer"
)

// SessionOptions are the choices of NewSessionProcessor. Zero means the default.
type SessionOptions struct {
	// Sessions is how many sessions are handled at a time. As many more may be held idle.
	// Default 8.
	Sessions int
	// Prefetch is how many events of a session the broker sends ahead. Default 16.
	Prefetch int
	// SessionIdle is how long a session without new events is held. It is given back
	// sooner when more than Sessions are idle. Default 1 s.
	SessionIdle time.Duration
	// SessionMax ends a session that is still busy, so that others get their turn.
	// Default 1 min; negative: never.
	SessionMax time.Duration

	// Inbox drops duplicates. Default: consumer.NewMemoryInbox(0).
	Inbox consumer.Inbox
	// GapDeliveries is how often an event behind a gap is put back before it is handled
	// all the same. Default 3; negative: handled at once.
	GapDeliveries int
	// RetryDelay is the pause of a session before its event is put back; it doubles with
	// each delivery of the event up to RetryDelayMax. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may go on after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called for every event that was dealt with, in the order of its
	// session. It must be quick and safe for concurrent use.
	Observe func(ctx context.Context, o consumer.Outcome)
	// Logger takes failures that Run survives. Default: discarded.
	Logger *slog.Logger
}

// Options are the choices of NewProcessor. Zero means the default.
type Options struct {
	// Concurrency is how many events are handled at a time. Default 8.
	Concurrency int
	// Prefetch is how many events the broker sends ahead. Default: twice Concurrency, and
	// not less than that.
	Prefetch int

	// RetryDelay is the pause before an event is put back; it doubles with each delivery of
	// the event up to RetryDelayMax. Others go on meanwhile. Defaults 1 s and 30 s.
	RetryDelay, RetryDelayMax time.Duration
	// DrainTimeout is how long handlers may go on after cancellation. Default 20 s.
	DrainTimeout time.Duration

	// Observe, if set, is called for every event that was dealt with. It must be quick and
	// safe for concurrent use.
	Observe func(ctx context.Context, o consumer.Outcome)
	// Logger takes failures that Run survives. Default: discarded.
	Logger *slog.Logger
}

func (o *SessionOptions) complete() error {
	o.Sessions = cmp.Or(o.Sessions, 8)
	o.Prefetch = cmp.Or(o.Prefetch, 16)
	o.SessionIdle = cmp.Or(o.SessionIdle, time.Second)
	o.SessionMax = cmp.Or(o.SessionMax, time.Minute)
	o.GapDeliveries = cmp.Or(o.GapDeliveries, 3)
	if o.Inbox == nil {
		o.Inbox = consumer.NewMemoryInbox(0)
	}
	var errs []error
	if o.Sessions < 0 || o.Prefetch < 0 {
		errs = append(errs, errors.New("options Sessions and Prefetch must be positive"))
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
