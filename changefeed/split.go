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

// splits completes them over the store.
type splits struct{ *env }

// storeParallel bounds concurrent requests to the lease store.
const storeParallel = 32

// childrenOf decides what a range that split is replaced by.
func (s *splits) childrenOf(ctx context.Context, rng FeedRange, split *SplitError) ([]FeedRange, error) {
	children := slices.Clone(split.Children)
	slices.SortFunc(children, byMin)
	if !tiles(rng, children) {
		physical, err := s.feed.Ranges(ctx)
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
func (s *splits) complete(ctx context.Context, parent Lease, known map[string]Lease) error {
	children := make([]Lease, len(parent.Children))
	var group errgroup.Group
	group.SetLimit(storeParallel)
	for i, c := range parent.Children {
		children[i] = parent.child(c, s.ids.lease(c.Range), s.opts.Now())
		if seen, there := known[children[i].ID]; there {
			children[i].ETag, children[i].State = seen.ETag, seen.State
			continue
		}
		group.Go(func() error { return s.createPending(ctx, &children[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// The barrier: parent is still split, so none of its children can have been
	// split and deleted before. A child just created from it is no replay.
	parent.Timestamp = s.opts.Now()
	if err := parent.replace(ctx, s.store); lostRace(err) {
		return nil // somebody else; what this call created is swept if unused
	} else if err != nil {
		return fmt.Errorf("confirm split of %s: %w", parent.ID, err)
	}
	group = errgroup.Group{}
	group.SetLimit(storeParallel)
	for i := range children {
		if children[i].State == LeasePending {
			group.Go(func() error { return s.activate(ctx, children[i]) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	parent.State = LeaseDone
	if err := parent.replace(ctx, s.store); lostRace(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("finish split of %s: %w", parent.ID, err)
	}
	s.sweep(ctx, parent)
	s.relist.send()
	return nil
}

// createPending makes sure the child's record exists. If it was there already
// its ETag stays unknown.
func (s *splits) createPending(ctx context.Context, child *Lease) error {
	etag, err := s.store.Create(ctx, child.encode())
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
func (s *splits) activate(ctx context.Context, want Lease) error {
	for range 4 {
		if want.ETag == "" {
			stored, err := readLease(ctx, s.store, want.ID)
			if err != nil {
				return fmt.Errorf("activate: %w", err) // if it is gone, the next cycle creates it again
			}
			if stored.State != LeasePending {
				return nil
			}
			want.ETag = stored.ETag
		}
		live := want.clone()
		live.State = LeaseLive
		_, err := s.store.Replace(ctx, live.encode())
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
func (s *splits) sweep(ctx context.Context, l Lease) {
	if l.ID == s.ids.info() {
		return
	}
	if l.Parent != "" {
		parent, err := readLease(ctx, s.store, l.Parent)
		if !errors.Is(err, ErrNotFound) && (err != nil || parent.State != LeaseDone) {
			return
		}
	}
	s.reportError(l.ID, "delete", unlessLostRace(s.store.Delete(ctx, l.ID, l.ETag)))
}
