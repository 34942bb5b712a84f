package changefeed

import (
	"cmp"
	"context"
	"errors"
)

// retire replaces the worker's lease by children that start at its checkpoint.
func (w *worker) retire(ctx context.Context, split *SplitError) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.keeper.fence.left())
	defer cancel()
	children, err := w.workers.splits.childrenOf(ctx, w.Range, split)
	if err != nil {
		w.reportError(w.Lease, "split", err)
		w.stop(stopOrder{reason: "the ranges of a split are not known"})
		w.release(ctx)
		return
	}
	w.replaceBy(ctx, children)
}

// replaceBy turns the lease into a split one with the given children, and completes the
// split. Children that already have leases must not be among them.
func (w *worker) replaceBy(ctx context.Context, children []FeedRange) {
	err := w.keeper.finish(ctx, func(l *Lease) { l.replaceBy(children) })
	if err != nil {
		w.reportLost(err)
		return
	}
	notify(w.obs.RangeSplit, RangeSplit{LeaseRef: w.LeaseRef, Owned: true, Children: children})
	w.reportError(w.Lease, "split", w.workers.splits.complete(ctx, w.keeper.snapshot(), nil))
}

// release gives up the lease and stores the checkpoint, in one write.
func (w *worker) release(ctx context.Context) {
	order, _ := w.current()
	err := w.keeper.finish(ctx, func(l *Lease) {
		l.disown()
		l.Handoff = order.handoff
	})
	if err != nil {
		w.reportLost(err)
		return
	}
	notify(w.obs.LeaseReleased, LeaseReleased{LeaseRef: w.LeaseRef, To: order.handoff.name(), Reason: cmp.Or(order.reason, "a handler did not end in time")})
}

func (w *worker) reportLost(err error) {
	e := LeaseLost{LeaseRef: w.LeaseRef, Err: err}
	if taken := (*takenError)(nil); errors.As(err, &taken) {
		e.To = taken.owner
	}
	notify(w.obs.LeaseLost, e)
}
