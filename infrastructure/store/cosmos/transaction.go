package cosmos

import (
	"context"
	"errors"
	"fmt"

	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/unitofwork"
)

// Save stores all operations in one transaction and returns the stored documents with their
// new ETags in the order they were sent. It keeps the operations: a Save that failed may be
// called again and sends the same, and Reset removes them. Without operations it does
// nothing.
//
// Options.Attempt makes an unknown outcome certain, with these parts of this store:
//
//   - The limits are checked first, and refuse without an attempt.
//   - A request is repeated if it was throttled, or refused for the moment (429, 449, 410).
//   - Its outcome is unknown after a timeout, a reset, 408 and most of 5xx.
//   - A refusal that an earlier attempt may have caused is resolved by reading back.
//
// The retries of the SDK are off for these requests, because they would repeat a request
// without our knowledge.
//
// Faults: Conflict, PreconditionFailed, NotFound, TooLarge, Throttled, Unavailable
// (CodeOutcomeUnknown if no attempt got an answer), Internal.
func (c *ContainerContext) Save(ctx context.Context) (saved []DataObject, err error) {
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
	err = c.options.Attempt(ctx, func(unknown bool) unitofwork.Outcome {
		o := c.attempt(ctx, ops, unknown)
		saved = o.saved
		return unitofwork.Outcome{Err: o.err, Unknown: o.unknown, Transient: o.transient()}
	})
	return saved, err
}

// attempt sends the operations once. If an earlier attempt may have caused the refusal, it
// reads back what is stored.
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

func (c *ContainerContext) describe(ops []operation) string {
	return fmt.Sprintf("save %d documents of %s", len(ops), c.partitionKey)
}
