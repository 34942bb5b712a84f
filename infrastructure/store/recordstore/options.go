package recordstore

import (
	"cmp"
	"context"
	"time"
)

// Options tune how aggregates are stored. Nil and zero values are the defaults.
type Options struct {
	// EventTTL is how long events stay. It must exceed the longest time the relay may be
	// down: an event that expires before it is sent is lost. Default 240 h; negative is for
	// ever.
	EventTTL time.Duration
	// DeletedTTL is how long the data of a deleted aggregate stays, unless its kind says
	// otherwise. Default 720 h (30 days); negative is for ever.
	DeletedTTL time.Duration
	// RequestTTL is how long an idempotency key of an update is remembered. Default 24 h;
	// negative is for ever.
	RequestTTL time.Duration
	// AuditTTL is how long an audit entry stays. Default 8760 h (365 days); negative is for
	// ever.
	AuditTTL time.Duration
	// AttemptTimeout bounds one attempt to commit, so that a lost answer leaves time to find
	// out what became of it. Default 8 s; negative leaves it to the caller's context.
	AttemptTimeout time.Duration
	// Attempts bounds how often one commit is sent. Default 3; negative is 1.
	Attempts int
	// Backoff is the wait before the second attempt; it doubles with each. Default 50 ms;
	// negative does not wait.
	Backoff time.Duration
	// Traceparent returns the W3C trace context of ctx, which is stored in the events; empty
	// for none. Default: none.
	Traceparent func(ctx context.Context) string
}

func (o *Options) withDefaults() Options {
	var given Options
	if o != nil {
		given = *o
	}
	given.EventTTL = cmp.Or(given.EventTTL, 240*time.Hour)
	given.DeletedTTL = cmp.Or(given.DeletedTTL, 30*24*time.Hour)
	given.RequestTTL = cmp.Or(given.RequestTTL, 24*time.Hour)
	given.AuditTTL = cmp.Or(given.AuditTTL, 365*24*time.Hour)
	given.AttemptTimeout = cmp.Or(given.AttemptTimeout, 8*time.Second)
	given.Attempts = max(cmp.Or(given.Attempts, 3), 1)
	given.Backoff = max(cmp.Or(given.Backoff, 50*time.Millisecond), 0)
	if given.Traceparent == nil {
		given.Traceparent = func(context.Context) string { return "" }
	}
	return given
}
