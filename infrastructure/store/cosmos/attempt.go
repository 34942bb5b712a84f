package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/domain/fault"
	"feedbox/infrastructure/store/cosmos/internal/store"
)

// outcome is the result of one attempt to save.
type outcome struct {
	saved   []DataObject // if err is nil
	err     error
	unknown bool // the attempt may have been applied
	failed  int  // the operation that was refused; -1 if the request was
	status  int  // of the refusal; 0 if unknown
}

// mayBeOwn reports whether an earlier attempt that was applied may have caused the refusal. If
// the operations begin with an event, only a conflict on its id shows that, because the id is
// never reused. Without an event, any refusal by the state of a document may be such a case if
// the outcome of an attempt is unknown.
func (o outcome) mayBeOwn(ops []operation, unknown bool) bool {
	if ops[0].isEvent() {
		return fault.Is(o.err, fault.Conflict) && ops[max(o.failed, 0)].isEvent()
	}
	switch fault.KindOf(o.err) {
	case fault.Conflict, fault.PreconditionFailed, fault.NotFound:
		return unknown
	default:
		return false
	}
}

// transient reports whether the attempt was refused for a reason that passes. A request that
// was never sent does not count, because the SDK has tried to connect for seconds already, unless a
// token was missing: the SDK asks for one once.
func (o outcome) transient() bool {
	return (fault.Is(o.err, fault.Throttled) || fault.Is(o.err, fault.Unavailable)) && (!store.NeverSent(o.err) || store.Tokenless(o.err))
}

// send makes one attempt: a point write for one operation, else a batch.
func (c *ContainerContext) send(ctx context.Context, ops []operation) outcome {
	ctx, cancel := c.options.WithAttemptTimeout(ctx)
	defer cancel()
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
	if len(ops) == 1 {
		return c.sendPoint(ctx, ops)
	}
	return c.sendBatch(ctx, ops)
}

// refusedRequest returns the outcome of a request that failed as a whole.
func (c *ContainerContext) refusedRequest(ops []operation, err error) outcome {
	c.session.Merge(store.SessionOf(err))
	o := outcome{err: store.AsFault(c.describe(ops), err), unknown: store.Ambiguous(err), failed: -1}
	if reply, ok := errors.AsType[*azcore.ResponseError](err); ok {
		o.status = reply.StatusCode
	}
	return o
}

func (c *ContainerContext) sendPoint(ctx context.Context, ops []operation) outcome {
	var (
		op    = ops[0]
		reply azcosmos.ItemResponse
		err   error
		key   = keyValue(op.object.PartitionKey)
		match = &azcosmos.ItemOptions{IfMatchEtag: &op.object.ETag}
	)
	switch op.verb {
	case verbCreate:
		reply, err = c.container.CreateItem(ctx, key, op.body, nil)
	case verbReplace:
		reply, err = c.container.ReplaceItem(ctx, key, op.object.ID, op.body, match)
	case verbDelete:
		reply, err = c.container.DeleteItem(ctx, key, op.object.ID, match)
	}
	if err != nil {
		return c.refusedRequest(ops, err)
	}
	if reply.SessionToken != nil {
		c.session.Merge(*reply.SessionToken)
	}
	return outcome{saved: []DataObject{op.saved(reply.ETag)}}
}

func (c *ContainerContext) sendBatch(ctx context.Context, ops []operation) outcome {
	batch := c.container.NewTransactionalBatch(keyValue(c.partitionKey))
	for i := range ops {
		op := &ops[i]
		match := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &op.object.ETag}
		switch op.verb {
		case verbCreate:
			batch.CreateItem(op.body, nil)
		case verbReplace:
			batch.ReplaceItem(op.object.ID, op.body, match)
		case verbDelete:
			batch.DeleteItem(op.object.ID, match)
		}
	}
	reply, err := c.container.ExecuteTransactionalBatch(ctx, batch, nil)
	if err != nil {
		return c.refusedRequest(ops, err)
	}
	c.session.Merge(reply.SessionToken)
	return c.readBatchReply(ops, reply)
}

// readBatchReply finds the operation that made the batch fail: the first whose status is not
// 424, failed dependency.
func (c *ContainerContext) readBatchReply(ops []operation, reply azcosmos.TransactionalBatchResponse) outcome {
	if len(reply.OperationResults) != len(ops) {
		err := fmt.Errorf("%s: the reply has %d results", c.describe(ops), len(reply.OperationResults))
		return outcome{err: store.AsFault(c.describe(ops), err), unknown: true, failed: -1}
	}
	saved := make([]DataObject, len(ops))
	for i, result := range reply.OperationResults {
		status := int(result.StatusCode)
		if status == http.StatusFailedDependency {
			continue
		}
		if status >= http.StatusBadRequest {
			what := fmt.Sprintf("%s: operation %d (%s)", c.describe(ops), i, ops[i].object.Type)
			err := store.StatusFault(what, status, reply.RawResponse, store.ErrRefused)
			return outcome{err: err, failed: i, status: status}
		}
		saved[i] = ops[i].saved(result.ETag)
	}
	if !reply.Success {
		err := fault.Wrap(fault.Internal, "", "the store refused the change", fmt.Errorf("%s: %w", c.describe(ops), store.ErrRefused))
		return outcome{err: err, failed: -1}
	}
	return outcome{saved: saved}
}

// saved returns the stored document after the operation.
func (op operation) saved(etag azcore.ETag) DataObject {
	o := op.object
	o.ETag = etag
	return o
}
