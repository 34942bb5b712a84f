package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"feedbox/domain/fault"
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
	var last outcome
	err = c.options.Attempt(ctx, func(unknown bool) unitofwork.Outcome {
		last = c.attempt(ctx, ops, unknown)
		return unitofwork.Outcome{Err: last.err, Unknown: last.unknown, Transient: last.transient()}
	})
	if err != nil {
		return nil, c.explain(ctx, ops, last, err)
	}
	return last.saved, nil
}

// explain adds to a refusal that the container does not exist or has another partition key, because
// the reply to a batch does not say so. It costs one read, and only after a refusal that is not
// explained by a document.
func (c *ContainerContext) explain(ctx context.Context, ops []operation, last outcome, err error) error {
	created := !slices.ContainsFunc(ops, func(op operation) bool { return op.verb != verbCreate })
	missing := last.status == http.StatusNotFound && (created || last.failed < 0 && len(ops) > 1)
	if !missing && last.status != http.StatusBadRequest {
		return err
	}
	ctx, cancel := c.options.WithAttemptTimeout(ctx)
	defer cancel()
	unfit := ContainerSpec{ID: c.container.ID(), PartitionKeyPath: "/" + cmp.Or(c.keyMember, PartitionKeyPath[1:])}.verify(ctx, c.container)
	if _, unread := errors.AsType[*fault.Error](unfit); unfit == nil || unread {
		return err
	}
	return fault.Wrap(fault.Internal, "container_unfit", "the store refused the request", fmt.Errorf("%w (%w)", unfit, err))
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
