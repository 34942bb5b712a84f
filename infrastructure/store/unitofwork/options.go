package unitofwork

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// Options tune how aggregates are stored. Nil and zero values are the defaults.
type Options struct {
	// EventTTL is the lifetime of stored events. It must exceed the longest downtime of the
	// relay, because an event that expires before it is sent is lost. Default 240 h; negative
	// is for ever.
	EventTTL time.Duration
	// MaxEventBytes is the size of the largest message that the broker accepts. A commit with a larger
	// event fails with fault.TooLarge (code "event_too_large"); otherwise the relay would park it, and
	// its key would wait for an operator. Default: the limit of the store.
	MaxEventBytes int
	// DeletedTTL is the lifetime of a deleted aggregate, unless its kind has its own. Default
	// 720 h (30 days); negative is for ever.
	DeletedTTL time.Duration
	// RequestTTL is how long the idempotency key of an update is remembered. Default 24 h;
	// negative is for ever.
	RequestTTL time.Duration
	// AuditTTL is the lifetime of an audit entry. Default 8760 h (365 days); negative is for
	// ever.
	AuditTTL time.Duration
	// AttemptTimeout limits one attempt to commit, so that time is left to resolve the outcome
	// if the answer is lost. Default 8 s; negative leaves it to the caller's context.
	AttemptTimeout time.Duration
	// Attempts is the maximum number of attempts of one commit, if the outcome is unknown or
	// the store refuses for the moment. Default 3; negative is 1.
	Attempts int
	// Backoff is the wait before the second attempt; it doubles with each. Default 50 ms;
	// negative does not wait.
	Backoff time.Duration
	// MaxThrottleWait is the longest wait that a throttled commit accepts from the store; a
	// longer one is returned as fault.Throttled. Only Cosmos DB asks for a wait. Default 2 s;
	// negative returns all.
	MaxThrottleWait time.Duration
	// Traceparent returns the W3C trace context of ctx, which is stored in the events; empty
	// for none. Default: none.
	Traceparent func(ctx context.Context) string
}

// WithDefaults returns a copy in which every value is set.
func (o *Options) WithDefaults() Options {
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
	return given
}

// CheckEvent refuses the message of an event that is larger than MaxEventBytes.
func (o *Options) CheckEvent(id uuid.UUID, message []byte) error {
	if o.MaxEventBytes <= 0 || len(message) <= o.MaxEventBytes {
		return nil
	}
	return fault.New(fault.TooLarge, "event_too_large",
		fmt.Sprintf("event %s is %d bytes long, and the broker accepts %d: store large data elsewhere and refer to it in the event", id, len(message), o.MaxEventBytes))
}

// WithAttemptTimeout returns the context of one attempt.
func (o *Options) WithAttemptTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.AttemptTimeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, o.AttemptTimeout)
}
