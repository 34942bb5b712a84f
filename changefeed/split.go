package changefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// A lease is replaced in two phases; doc.go draws them. retire is the first: one
// write, by the owner, after which the lease is never processed again. complete
// is the second: anyone may do it, any number of times, from any point on.

// storeParallel bounds concurrent requests to the lease store.
const storeParallel = 32

// retire replaces the worker's lease by children that start at its checkpoint.
func (w *worker) retire(ctx context.Context, split *SplitError) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.own.untilFence())
	defer cancel()
	children, err := w.r.childrenOf(ctx, w.rng, split)
	if err != nil {
		w.r.obs.leaseError(LeaseError{Lease: w.id, Op: "split", Err: err})
		w.release(ctx)
		return
	}
	w.replaceBy(ctx, children)
}

// replaceBy makes the lease a split one with the given children, and completes
// that. Children that others already have are not among them.
func (w *worker) replaceBy(ctx context.Context, children []FeedRange) {
	err := w.own.finish(ctx, func(l *Lease) { l.replaceBy(children) })
	if err != nil {
		w.r.obs.leaseLost(LeaseLost{Lease: w.id, Range: w.rng, Epoch: w.epoch, Err: err})
		return
	}
	w.r.obs.rangeSplit(RangeSplit{Lease: w.id, Range: w.rng, Children: children})
	if err := w.r.complete(ctx, w.own.snapshot(), nil); err != nil {
		w.r.obs.leaseError(LeaseError{Lease: w.id, Op: "split", Err: err})
	}
}

// replaceBy turns a live lease into a split one: children go on from its
// checkpoint, which is that of the last page handled, not of the last one read.
func (l *Lease) replaceBy(children []FeedRange) {
	l.State = LeaseSplit
	l.disown()
	l.Previous = ""
	l.Children = nil
	for _, c := range children {
		l.Children = append(l.Children, RangeToken{Range: c, Continuation: l.Continuation, Since: l.Since})
	}
}

// childrenOf decides what a range that split is replaced by.
func (r *run) childrenOf(ctx context.Context, rng FeedRange, split *SplitError) ([]FeedRange, error) {
	children := slices.Clone(split.Children)
	slices.SortFunc(children, func(a, b FeedRange) int { return compareKeys(a.Min, b.Min) })
	if !tiles(rng, children) {
		physical, err := r.feed.Ranges(ctx)
		if err != nil {
			return nil, fmt.Errorf("list ranges: %w", err)
		}
		children = cut(rng, physical)
	}
	if len(children) < 2 || !tiles(rng, children) {
		return nil, fmt.Errorf("range %s: the physical ranges do not cut it: %v", rng, children)
	}
	return children, nil
}

// complete carries a split to its end: children exist, children live, parent
// done. parent is as last read or written; if that is out of date, somebody else
// is further along and nothing is changed. known are records seen in a listing,
// to spare requests. Whatever fails is left to the next call.
func (r *run) complete(ctx context.Context, parent Lease, known map[string]Lease) error {
	children := make([]Lease, len(parent.Children))
	var group errgroup.Group
	group.SetLimit(storeParallel)
	for i, c := range parent.Children {
		children[i] = r.childOf(parent, c)
		if seen, there := known[children[i].ID]; there {
			children[i].ETag, children[i].State = seen.ETag, seen.State
			continue
		}
		group.Go(func() error { return r.createPending(ctx, &children[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// The barrier: parent is still split, so none of its children can have been
	// split and deleted before. A child just created from it is no replay.
	parent.Timestamp = r.opts.Now()
	etag, err := r.store.Replace(ctx, parent.encode())
	if errors.Is(err, ErrETagMismatch) || errors.Is(err, ErrNotFound) {
		return nil // somebody else; what this call created is swept if unused
	}
	if err != nil {
		return fmt.Errorf("confirm split of %s: %w", parent.ID, err)
	}
	parent.ETag = etag
	group = errgroup.Group{}
	group.SetLimit(storeParallel)
	for i := range children {
		if children[i].State == LeasePending {
			group.Go(func() error { return r.activate(ctx, children[i]) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	parent.State = LeaseDone
	if etag, err = r.store.Replace(ctx, parent.encode()); err != nil {
		if errors.Is(err, ErrETagMismatch) || errors.Is(err, ErrNotFound) {
			return nil
		}
		return fmt.Errorf("finish split of %s: %w", parent.ID, err)
	}
	parent.ETag = etag
	r.sweep(ctx, parent)
	r.hurry()
	return nil
}

// childOf is what a split makes of one child, not stored yet.
func (r *run) childOf(parent Lease, c RangeToken) Lease {
	child := Lease{
		ID: r.ids.lease(c.Range), Version: 1, Token: c.Range.String(), Range: c.Range, Mode: modeIncremental,
		State: LeasePending, Parent: parent.ID, Epoch: parent.Epoch,
		Continuation: c.Continuation, Since: c.Since, LSN: parent.LSN, ChangeTime: parent.ChangeTime,
		Attempts: parent.Attempts, Timestamp: r.opts.Now(),
		Request: Request{Paused: parent.Request.Paused},
	}
	if rewind := parent.Request.Rewind; rewind != nil {
		child.Request.Rewind = &RangeToken{Range: c.Range, Continuation: rewind.Continuation, Since: rewind.Since}
	}
	return child
}

// createPending makes sure the child's record exists. If it was there already
// its ETag stays unknown.
func (r *run) createPending(ctx context.Context, child *Lease) error {
	etag, err := r.store.Create(ctx, child.encode())
	switch {
	case err == nil:
		child.ETag = etag
	case !errors.Is(err, ErrExists):
		return fmt.Errorf("create lease %s: %w", child.ID, err)
	}
	return nil
}

// activate makes a pending child live, at its parent's checkpoint whatever
// position the pending record had: a former owner of the parent may have made
// it from an older one. A child that is anything but pending is further along.
func (r *run) activate(ctx context.Context, want Lease) error {
	for range 4 {
		if want.ETag == "" {
			record, err := r.store.Read(ctx, want.ID)
			if errors.Is(err, ErrNotFound) {
				return fmt.Errorf("activate lease %s: %w", want.ID, err) // next cycle creates it again
			}
			if err != nil {
				return fmt.Errorf("activate lease %s: %w", want.ID, err)
			}
			stored, err := decodeLease(record)
			if err != nil {
				return fmt.Errorf("activate lease %s: %w", want.ID, err)
			}
			if stored.State != LeasePending {
				return nil
			}
			want.ETag = stored.ETag
		}
		live := want.clone()
		live.State = LeaseLive
		_, err := r.store.Replace(ctx, live.encode())
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, ErrETagMismatch):
			return fmt.Errorf("activate lease %s: %w", want.ID, err)
		}
		want.ETag = ""
	}
	return fmt.Errorf("activate lease %s: %w", want.ID, ErrETagMismatch)
}

// sweep deletes a record that stands for nothing any more: a done parent whose
// own parent is gone or done, or a pending child nobody will activate. Deleting
// from the top down keeps complete's barrier true. That it fails is harmless.
func (r *run) sweep(ctx context.Context, l Lease) {
	if l.ID == r.ids.info() {
		return
	}
	if l.Parent != "" {
		record, err := r.store.Read(ctx, l.Parent)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			return
		default:
			parent, err := decodeLease(record)
			if err != nil || parent.State != LeaseDone {
				return
			}
		}
	}
	err := r.store.Delete(ctx, l.ID, l.ETag)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrETagMismatch) {
		r.obs.leaseError(LeaseError{Lease: l.ID, Op: "delete", Err: err})
	}
}
