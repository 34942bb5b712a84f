package changefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// splits carries out the second phase of a split, drawn in doc.go, on the store. Any host
// can do so, any number of times, from any step on.
type splits struct{ *env }

// inParallel calls do for 0 to n-1, some at a time, and returns the first error.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(32) // a bound on concurrent requests to the lease store or the feed
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// childrenOf returns the children of a range that split.
func (s *splits) childrenOf(ctx context.Context, rng FeedRange, split *SplitError) ([]FeedRange, error) {
	children := slices.Clone(split.Children)
	slices.SortFunc(children, byMin)
	whole := tiles(rng, children)
	if !whole {
		physical, err := s.feed.Ranges(ctx)
		if err != nil {
			return nil, fmt.Errorf("list ranges: %w", err)
		}
		children, whole = cut(rng, physical)
	}
	if len(children) < 2 || !whole {
		return nil, fmt.Errorf("range %s: the physical ranges %v do not divide it", rng, children)
	}
	return children, nil
}

// complete completes a split: the children exist, the children are live, the parent is
// done. parent is as last read or written. If it is out of date, another host is further
// along and nothing is changed. known are records of a listing, which save requests. The
// next call repeats failed steps.
func (s *splits) complete(ctx context.Context, parent Lease, known map[string]Lease) error {
	children := make([]Lease, len(parent.Children))
	err := inParallel(len(children), func(i int) error {
		c := parent.Children[i]
		child := parent.child(c, s.ids.lease(c.Range), s.opts.Now())
		if err := s.create(ctx, &child, known); err != nil {
			return err
		}
		children[i] = child
		return nil
	})
	if err != nil {
		return err
	}
	// The barrier: parent is still split, so none of its children can have been split and
	// deleted before. A child that has the ETag from before the barrier therefore replays nothing.
	parent.Timestamp = s.opts.Now()
	if err := parent.replace(ctx, s.store); err != nil { // after a lost race, unused children are swept
		return unlessLostRace(fmt.Errorf("confirm split of %s: %w", parent.ID, err))
	}
	err = inParallel(len(children), func(i int) error {
		if children[i].State != LeasePending {
			return nil
		}
		return s.activate(ctx, children[i])
	})
	if err != nil { // after a lost race, another host is further along, or the next cycle continues
		return unlessLostRace(err)
	}
	parent.State, parent.Children = LeaseDone, nil // the record of the first leases stays, and every host lists it
	if err := parent.replace(ctx, s.store); err != nil {
		return unlessLostRace(fmt.Errorf("finish split of %s: %w", parent.ID, err))
	}
	s.sweep(ctx, parent)
	s.relist.send()
	return nil
}

// create creates a pending child, or sets its ETag and state if it exists.
func (s *splits) create(ctx context.Context, child *Lease, known map[string]Lease) error {
	stored, there := known[child.ID]
	if !there {
		etag, err := s.store.Create(ctx, child.encode())
		if err == nil {
			child.ETag = etag
			return nil
		}
		if !errors.Is(err, ErrExists) {
			return fmt.Errorf("create lease %s: %w", child.ID, err)
		}
		if stored, err = readLease(ctx, s.store, child.ID); err != nil {
			return err
		}
	}
	child.ETag, child.State = stored.ETag, stored.State
	return nil
}

// activate makes a pending child live at its parent's checkpoint. It ignores the position of the
// pending record, because a former owner of the parent may have created it from an older one. It
// does not try again with a newer ETag, because after the barrier the child may have been split and
// deleted, and a host that stopped before its own barrier may have created it again.
func (s *splits) activate(ctx context.Context, child Lease) error {
	child.State = LeaseLive
	if err := child.replace(ctx, s.store); err != nil {
		return fmt.Errorf("activate lease %s: %w", child.ID, err)
	}
	return nil
}

// sweep deletes a record that is not needed any more: a done parent whose own parent is
// gone or done, or a pending child that no split will activate. Parents go first,
// because otherwise the barrier of complete would not hold. A failed delete is harmless.
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
