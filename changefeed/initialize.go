package changefeed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Initialization needs no lock, because exactly one host succeeds in creating the
// {prefix}.info record, and so decides the first leases. Any host completes it, like a
// split.

// initialize does the next step of the initialization. done reports whether there was none.
func (r *run) initialize(ctx context.Context, seen listing) (done bool, err error) {
	switch {
	case seen.info == nil:
		return false, r.createInfo(ctx, seen)
	case seen.info.properties[propScope] != scopeName(r.opts.Scope):
		return false, fmt.Errorf("the leases of processor %q were made for the scope %q, not %q; use another Processor name: %w",
			r.opts.Processor, seen.info.properties[propScope], scopeName(r.opts.Scope), ErrPermanent)
	case seen.info.properties[propPurpose] != r.opts.Purpose:
		return false, fmt.Errorf("the leases of processor %q have the purpose %q, not %q, and one would skip what the other has handled; use another Processor name: %w",
			r.opts.Processor, seen.info.properties[propPurpose], r.opts.Purpose, ErrPermanent)
	case seen.info.State == LeaseSplit:
		return false, r.splits.complete(ctx, *seen.info, seen.byID())
	}
	return true, nil
}

// findInfo reads the info record if the listing lacks it, because a listing is no proof that a record
// is gone. Without it nothing would be balanced.
func (r *run) findInfo(ctx context.Context, seen *listing) {
	if seen.info != nil || !r.initialized() {
		return
	}
	switch info, err := readLease(ctx, r.store, r.ids.info()); {
	case err == nil:
		seen.info = &info
		r.reportError("", "list", fmt.Errorf("%s exists, and the listing lacks it", info.ID))
	case !errors.Is(err, ErrNotFound):
		r.reportError("", "list", err)
	}
}

// Up to atOnce first leases are created in one round of requests, so any host completes them.
// A host creates more in about perFirstLease each: two writes of some 8 ms, 32 at a time.
const (
	atOnce        = 32
	perFirstLease = 500 * time.Microsecond
)

// leaveInitialization returns how long to wait for the host that decided the first leases and is
// creating them, or 0. All hosts of a new deployment would otherwise create each lease. Once
// nothing has changed for two to three times Acquire, that host may be gone, and others continue.
func (r *run) leaveInitialization(seen listing, now time.Time) time.Duration {
	if r.initializes || seen.info == nil || seen.info.State != LeaseSplit || len(seen.info.Children) <= atOnce {
		return 0
	}
	quiet := r.lister.etags.unchangedFor(seen.info.ID, now)
	for _, c := range seen.info.Children {
		if id := r.ids.lease(c.Range); r.lister.etags.listed(id) {
			quiet = min(quiet, r.lister.etags.unchangedFor(id, now))
		}
	}
	if quiet >= jitter(r.opts.Acquire*5/2) {
		return 0
	}
	return jitter(min(r.opts.Acquire, r.opts.AcquireFast+time.Duration(len(seen.info.Children))*perFirstLease))
}

// scopeName renders a scope, "" for the whole key space.
func scopeName(scope []FeedRange) string {
	if scope[0].Equal(FullRange()) {
		return ""
	}
	names := make([]string, len(scope))
	for i, r := range scope {
		names[i] = r.String()
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// createInfo decides the first leases: one per physical range within the scope that has no
// lease yet.
func (r *run) createInfo(ctx context.Context, seen listing) error {
	physical, err := r.feed.Ranges(ctx)
	if err != nil {
		return fmt.Errorf("list ranges: %w", err)
	}
	known := r.gaps.known()
	var ranges []FeedRange
	var lost []Lease
	for _, gap := range inspectTiling(r.opts.Scope, seen.leases).gaps {
		remembered, rest := recall(gap, known)
		lost = append(lost, remembered...)
		for _, gap := range rest {
			parts, whole := cut(gap, physical)
			if !whole {
				return fmt.Errorf("the physical ranges %v do not cover %s", physical, gap)
			}
			ranges = append(ranges, parts...)
		}
	}
	// Not as children of the info record, which would not be held any more if they were before.
	if err := inParallel(len(lost), func(i int) error { return r.gaps.create(ctx, lost[i]) }); err != nil {
		return fmt.Errorf("create lost leases: %w", err)
	}
	info := Lease{ID: r.ids.info(), Version: 1, State: LeaseSplit, Timestamp: r.opts.Now()}
	histories := map[string]bool{}
	for _, l := range known { // of lost leases: epochs must not start again from zero
		info.Epoch, info.History = max(info.Epoch, l.Epoch), l.History
		histories[l.History] = true
	}
	if len(histories) != 1 || info.History == "" { // else the positions continue, and their history
		info.History = newHistory()
	}
	info.properties = map[string]string{propScope: scopeName(r.opts.Scope), propPurpose: r.opts.Purpose}
	maps.DeleteFunc(info.properties, func(_, value string) bool { return value == "" })
	children, since, err := r.startPositions(ctx, ranges, len(known) > 0)
	if err != nil {
		return err
	}
	info.Children, info.Since = children, since
	r.initializes = true
	info.ETag, err = r.store.Create(ctx, info.encode())
	switch {
	case errors.Is(err, ErrExists):
		r.initializes = false
		if gone := r.gaps.infoGone; !gone.IsZero() && r.clock.Now().Sub(gone) >= r.opts.Expiry {
			return fmt.Errorf("%s exists, and listings still lack it", info.ID)
		}
		return nil // the next listing contains it
	case err != nil:
		return fmt.Errorf("create %s: %w", info.ID, err)
	}
	return r.splits.complete(ctx, info, seen.byID())
}

// newHistory returns a name that no other history has.
func newHistory() string { return rand.Text()[:13] }

// startMargin is how far before initialization a repaired gap begins if the processor
// started from now. It is larger than the difference between any two clocks, because
// changes would otherwise be skipped.
const startMargin = time.Hour

// startPositions resolves Options.Start for the first leases. since is the start position
// of a range whose lease and position are lost later. A run that was initialized before and finds
// the store emptied begins what it does not remember at the beginning, because redelivery is better
// than loss.
func (r *run) startPositions(ctx context.Context, children []FeedRange, emptied bool) (placed []RangeToken, since time.Time, err error) {
	start := r.opts.Start
	since = start.since
	if emptied {
		start = Start{}
	} else if start.now {
		since = r.opts.Now().Add(-startMargin)
	}
	parts := make([][]RangeToken, len(children))
	err = inParallel(len(children), func(i int) (err error) {
		parts[i], err = start.place(ctx, r.feed, children[i])
		return err
	})
	return slices.Concat(parts...), since, err
}

// place resolves a start for one range: one position, or several if saved tokens cut it.
func (s Start) place(ctx context.Context, feed Feed, r FeedRange) ([]RangeToken, error) {
	switch {
	case s.now:
		now, err := feed.Now(ctx, r)
		if err == nil && now == "" { // refused, because it would mean the beginning
			err = errors.New("the feed gave no continuation")
		}
		if err != nil {
			return nil, fmt.Errorf("resolve now for %s: %w", r, err)
		}
		return []RangeToken{{Range: r, Continuation: now}}, nil
	case len(s.tokens) > 0:
		parts := placeTokens(r, s.tokens)
		if parts == nil {
			return nil, fmt.Errorf("start: the saved tokens do not cover %s: %w", r, ErrPermanent)
		}
		return parts, nil
	}
	return []RangeToken{{Range: r, Since: s.since}}, nil
}

// placeTokens cuts a range at the bounds of saved tokens; nil if they do not
// cover it.
func placeTokens(r FeedRange, tokens []RangeToken) (placed []RangeToken) {
	var ranges []FeedRange
	for _, t := range tokens {
		ranges = append(ranges, t.Range)
		if t.Range = r.Intersect(t.Range); !t.Range.Empty() {
			placed = append(placed, t)
		}
	}
	if _, whole := cut(r, ranges); !whole {
		return nil
	}
	return placed
}
