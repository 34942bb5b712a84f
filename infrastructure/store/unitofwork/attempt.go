package unitofwork

import (
	"context"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
)

// CodeOutcomeUnknown is the code of an Unavailable fault after which the change may be
// stored or not. A client resolves it by reading, or by repeating the request under its
// idempotency key.
const CodeOutcomeUnknown = "outcome_unknown"

// Outcome is the result of one attempt to save. The zero value is success.
type Outcome struct {
	Err       error
	Unknown   bool // the attempt may have been applied
	Transient bool // the store refused for a reason that passes
}

// final reports whether the stored documents or a limit refused the attempt. They would refuse
// any other attempt, too.
func (o Outcome) final() bool {
	switch fault.KindOf(o.Err) {
	case fault.Conflict, fault.PreconditionFailed, fault.NotFound, fault.TooLarge:
		return !o.Unknown
	default:
		return false
	}
}

// Attempt calls send, which sends the same change each time, until the outcome is certain:
//
//	        ┌── unknown (no answer): wait ─────────────────────────────┐
//	        ▼                                                          │
//	send, one attempt ──stored──▶ done                                 │
//	   │                                                               │
//	   ├── transient (throttled, deadlock): wait ──────────────────────┤
//	   ├── refused, perhaps by an earlier attempt that was stored:     │
//	   │      send reads back: own change is there ──▶ done            │
//	   │                       no answer: unknown ─────────────────────┘
//	   └── refused otherwise ──▶ the fault: nothing is or will be stored
//
// The last line also holds for an attempt that is still in flight when a later one is
// refused. Whatever refuses the later one (another version or ETag, a taken id) refuses the
// earlier one too, because versions and ETags are never reused. If a later attempt succeeds,
// an earlier one that arrives afterwards is refused.
//
// The argument of send reports whether an earlier attempt may have been applied. If an
// attempt got no answer and no later one settled the outcome, the error is Unavailable with
// CodeOutcomeUnknown.
func (o *Options) Attempt(ctx context.Context, send func(unknown bool) Outcome) error {
	unknown := false
	for attempt := 1; ; attempt++ {
		got := send(unknown)
		if got.Err == nil || got.final() {
			return got.Err
		}
		unknown = unknown || got.Unknown
		if wait, again := o.waitAfter(attempt, got, unknown); again && Pause(ctx, wait) == nil {
			continue
		}
		if unknown {
			return fault.Wrap(fault.Unavailable, CodeOutcomeUnknown, "the store did not answer; the change may have been made", got.Err)
		}
		return got.Err
	}
}

// waitAfter returns the wait before the next attempt, and whether there is one.
func (o *Options) waitAfter(attempt int, got Outcome, unknown bool) (time.Duration, bool) {
	if attempt >= o.Attempts || (!unknown && !got.Transient) {
		return 0, false
	}
	if asked := fault.RetryAfter(got.Err); asked > 0 {
		return asked, asked <= o.MaxThrottleWait
	}
	return Jitter(max(o.Backoff<<(attempt-1), 0)), true // a large shift overflows to a negative wait
}

// Jitter returns a random duration between half of wait and wait.
func Jitter(wait time.Duration) time.Duration { return wait/2 + rand.N(wait/2+1) }

// Pause waits, and returns the error of ctx if that ends first.
func Pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
