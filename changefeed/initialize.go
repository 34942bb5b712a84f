package changefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Initialisation needs no lock: one host succeeds in creating the {prefix}.info record,
// and so decides what the first leases are. Any host completes that, as it does a split.

// initialize does what is left of it; done if nothing was.
func (r *run) initialize(ctx context.Context, seen listing) (done bool, err error) {
	switch {
	case seen.info == nil:
		return false, r.createInfo(ctx, seen)
	case seen.info.properties[propScope] != scopeName(r.opts.Scope):
		return false, fmt.Errorf("the leases of processor %q were made for the scope %q, not %q; use another Processor name: %w",
			r.opts.Processor, seen.info.properties[propScope], scopeName(r.opts.Scope), ErrPermanent)
	case seen.info.State == LeaseSplit:
		return false, r.splits.complete(ctx, *seen.info, seen.byID())
	}
	return true, nil
}

// propScope keeps the scope the leases tile in the info record; absent is the
// whole key space.
const propScope = "scope"

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

// createInfo decides what the first leases are: one per physical range, within
// the scope, where no lease is yet.
func (r *run) createInfo(ctx context.Context, seen listing) error {
	physical, err := r.feed.Ranges(ctx)
	if err != nil {
		return fmt.Errorf("list ranges: %w", err)
	}
	var ranges []FeedRange
	for _, gap := range inspectTiling(r.opts.Scope, seen.leases).gaps {
		parts, whole := cut(gap, physical)
		if !whole {
			return fmt.Errorf("the physical ranges %v do not cover %s", physical, gap)
		}
		ranges = append(ranges, parts...)
	}
	info := Lease{ID: r.ids.info(), Version: 1, State: LeaseSplit, Timestamp: r.opts.Now()}
	for _, l := range r.gaps.remembered { // of leases that are lost: epochs must not begin anew
		info.Epoch = max(info.Epoch, l.Epoch)
	}
	if scope := scopeName(r.opts.Scope); scope != "" {
		info.properties = map[string]string{propScope: scope}
	}
	children, since, err := r.startPositions(ctx, ranges)
	if err != nil {
		return err
	}
	info.Children, info.Since = children, since
	info.ETag, err = r.store.Create(ctx, info.encode())
	switch {
	case errors.Is(err, ErrExists):
		return nil // the next look shows it
	case err != nil:
		return fmt.Errorf("create %s: %w", info.ID, err)
	}
	return r.splits.complete(ctx, info, seen.byID())
}

// startMargin is how far before initialisation a repaired gap of a processor
// that started from now begins: more than any two clocks differ.
const startMargin = time.Hour

// startPositions resolves Options.Start for the first leases. since is where a range
// begins whose lease and position are lost later.
func (r *run) startPositions(ctx context.Context, children []FeedRange) (placed []RangeToken, since time.Time, err error) {
	start := r.opts.Start
	since = start.since
	// A run that was initialised before and finds the store emptied goes on from
	// what it remembers rather than skipping what happened since.
	recalled := len(r.gaps.remembered) > 0
	if recalled {
		start = Start{}
		for _, l := range r.gaps.remembered {
			start.tokens = append(start.tokens, l.position())
		}
	} else if start.now {
		since = r.opts.Now().Add(-startMargin)
	}
	parts := make([][]RangeToken, len(children))
	err = inParallel(len(children), func(i int) (err error) {
		parts[i], err = start.place(ctx, r.feed, children[i])
		if recalled && err != nil {
			parts[i], err = []RangeToken{{Range: children[i]}}, nil // from the beginning: rather again than never
		}
		return err
	})
	return slices.Concat(parts...), since, err
}

// place resolves a start for one range: one position, or several where saved tokens
// cut it.
func (s Start) place(ctx context.Context, feed Feed, r FeedRange) ([]RangeToken, error) {
	switch {
	case s.now:
		now, err := feed.Now(ctx, r)
		if err == nil && now == "" {
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
