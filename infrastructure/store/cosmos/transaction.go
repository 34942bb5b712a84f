package cosmos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// CodeOutcomeUnknown is the code of an Unavailable fault after which the change
// may be stored or not. A client finds out by reading, or by repeating the
// request under its idempotency key.
const CodeOutcomeUnknown = "outcome_unknown"

// Save stores all that was noted, everything or nothing, and returns the stored
// documents with their new ETags in the order they were sent. It forgets nothing:
// a Save that failed may be called again and sends the same, and Reset starts
// anew. With nothing noted it does nothing.
//
// How an outcome becomes certain: each attempt sends the same operations.
//
//	                 ┌───── unknown (time-out, reset, 408, 5xx): wait, again ────┐
//	                 ▼                                                           │
//	limits ──▶ send, one attempt ──stored──▶ done: ETags of this reply           │
//	             │   ▲                                                           │
//	             │   └── not now (429, 449, 410): wait, again                    │
//	             ├── refused by what an earlier attempt may have stored ─────────┤
//	             │      read it back: ours ──▶ done: ETags read back             │
//	             │                    cannot tell ───────────────────────────────┘
//	             └── refused otherwise ──▶ the fault: nothing is or will be stored
//
// The last line holds also for an attempt that is still on its way when a later
// one is refused. What refuses the later one (another ETag, a taken id) refuses
// the earlier one too: ETags never come back. And if a later attempt succeeds, an
// earlier one that arrives afterwards fails on the event's id.
//
// The SDK's own retries are off for these requests, so that each attempt is one
// request and none is repeated unseen.
//
// Faults: Conflict, PreconditionFailed, NotFound, TooLarge, Throttled, Unavailable
// (CodeOutcomeUnknown when no attempt gave an answer), Internal.
func (c *ContainerContext) Save(ctx context.Context) ([]DataObject, error) {
	ops := c.ordered()
	if len(ops) == 0 {
		return nil, nil
	}
	if err := checkLimits(ops); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, store.AsFault(c.describe(ops), err)
	}
	unknown := false // some attempt may have stored it
	for attempt := 1; ; attempt++ {
		o := c.attempt(ctx, ops, unknown)
		if o.err == nil {
			return o.saved, nil
		}
		unknown = unknown || o.unknown
		if o.final() {
			return nil, o.err
		}
		if wait, again := c.waitBefore(attempt, o, unknown); again && pause(ctx, wait) == nil {
			continue
		}
		if unknown {
			return nil, outcomeUnknown(c.describe(ops), o.err)
		}
		return nil, o.err
	}
}

// attempt sends the operations once. If the refusal can come from an earlier
// attempt that was applied, it looks at what is stored.
func (c *ContainerContext) attempt(ctx context.Context, ops []operation, unknown bool) outcome {
	o := c.send(ctx, ops)
	if !o.mayBeOwn(ops, unknown) {
		return o
	}
	saved, own, err := c.readBack(ctx, ops, o.failed)
	switch {
	case err != nil:
		return outcome{err: errors.Join(o.err, err), unknown: true, failed: -1}
	case own:
		return outcome{saved: saved}
	default:
		return o
	}
}

// waitBefore decides whether an attempt may be followed by another one, and after
// what time. The SDK has tried for seconds already when it could not connect, so
// that is tried again only to clear up what an earlier attempt came to.
func (c *ContainerContext) waitBefore(attempt int, o outcome, unknown bool) (time.Duration, bool) {
	if attempt >= c.options.Attempts || (!unknown && !o.transient()) {
		return 0, false
	}
	if asked := fault.RetryAfter(o.err); asked > 0 {
		return asked, asked <= c.options.MaxThrottleWait
	}
	backoff := max(c.options.Backoff<<(attempt-1), 0) // a shift too far is negative
	return backoff/2 + rand.N(backoff/2+1), true
}

// pause waits, and fails when ctx ends first.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (c *ContainerContext) describe(ops []operation) string {
	return fmt.Sprintf("save %d documents of %s", len(ops), c.partitionKey)
}

func outcomeUnknown(what string, err error) error {
	return fault.Wrap(fault.Unavailable, CodeOutcomeUnknown,
		"the store did not answer; the change may have been made", fmt.Errorf("%s: %w", what, err))
}
