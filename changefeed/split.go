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
		if seen, there := known[child.ID]; there {
			child.ETag, child.State = seen.ETag, seen.State
		} else if etag, err := s.store.Create(ctx, child.encode()); err == nil {
			child.ETag = etag
		} else if !errors.Is(err, ErrExists) { // if it exists, its ETag stays unknown
			return fmt.Errorf("create lease %s: %w", child.ID, err)
		}
		children[i] = child
		return nil
	})
	if err != nil {
		return err
	}
	// The barrier: parent is still split, so none of its children can have been split and
	// deleted before. A child just created from it therefore replays nothing.
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
	if err != nil {
		return err
	}
	parent.State = LeaseDone
	if err := parent.replace(ctx, s.store); err != nil {
		return unlessLostRace(fmt.Errorf("finish split of %s: %w", parent.ID, err))
	}
	s.sweep(ctx, parent)
	s.relist.send()
	return nil
}

// activate makes a pending child live at its parent's checkpoint. It ignores the position
// of the pending record, because a former owner of the parent may have created it from an
// older one. A child that is not pending is further along.
func (s *splits) activate(ctx context.Context, want Lease) error {
	want.State = LeaseLive
	for range 2 { // then the next cycle continues, because the store may return old versions
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
		_, err := s.store.Replace(ctx, want.encode())
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
