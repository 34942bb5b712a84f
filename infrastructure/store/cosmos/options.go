package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Options tune how aggregates are stored. Nil and zero values are the defaults.
type Options struct {
	// EventTTL is how long events stay in the container. It must exceed the longest
	// time the relay may be down: an event that expires before it is sent is lost.
	// Default 240 h; negative is for ever.
	EventTTL time.Duration
	// DeletedTTL is how long a deleted aggregate stays, unless its kind says
	// otherwise. Default 720 h (30 days);
	// negative is for ever.
	DeletedTTL time.Duration
	// RequestTTL is how long an idempotency key of an update is remembered. Default
	// 24 h; negative is for ever.
	RequestTTL time.Duration
	// AuditTTL is how long an audit entry stays. Default 8760 h (365 days); negative
	// is for ever.
	AuditTTL time.Duration
	// AttemptTimeout bounds one attempt to commit, so that a lost answer leaves time
	// to find out what became of it. Default 8 s; negative leaves it to the caller's
	// context.
	AttemptTimeout time.Duration
	// Attempts bounds how often one commit is sent, when its outcome is unknown or
	// the store is throttled. Default 3; negative is 1.
	Attempts int
	// Backoff is the wait before the second attempt; it doubles with each. Default
	// 50 ms; negative does not wait.
	Backoff time.Duration
	// MaxThrottleWait is the longest wait the store may ask for that a commit sits
	// out itself; a longer one is passed on as fault.Throttled. Default 2 s; negative
	// passes all on.
	MaxThrottleWait time.Duration
	// Traceparent returns the W3C trace context of ctx, which is stored in the events;
	// empty for none. Default: none.
	Traceparent func(ctx context.Context) string
}

func (o *Options) withDefaults() (Options, error) {
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
	given.MaxThrottleWait = max(cmp.Or(given.MaxThrottleWait, 2*time.Second), 0)
	if given.Traceparent == nil {
		given.Traceparent = func(context.Context) string { return "" }
	}
	var faults []error
	for _, ttl := range []struct {
		name  string
		value time.Duration
	}{
		{"EventTTL", given.EventTTL},
		{"DeletedTTL", given.DeletedTTL},
		{"RequestTTL", given.RequestTTL},
		{"AuditTTL", given.AuditTTL},
	} {
		if ttl.value > maxTTL {
			faults = append(faults, fmt.Errorf("cosmos: %s is longer than the store can count, %s", ttl.name, maxTTL))
		}
	}
	return given, errors.Join(faults...)
}

// maxTTL is the longest time to live (REST reference, "Time to live").
const maxTTL = 2147483647 * time.Second
