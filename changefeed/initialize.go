package changefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Initialisation needs no lock: the {prefix}.info record is the root of all
// leases, a split one whose children are the first leases and their positions.
// Creating it is atomic, so that of any number of hosts one decides what they
// are; any host completes it, as it completes any split; it is never deleted.

// initialize returns once the leases exist. It tries again whatever may pass.
func (r *run) initialize(ctx context.Context) error {
	retry := backoff{min: r.opts.RetryMin, max: min(r.opts.RetryMax, r.opts.Acquire)}
	const atOnce = 4 // steps; more means that what was written is not seen
	for steps := 1; ; steps++ {
		done, err := r.tryInitialize(ctx)
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrPermanent):
			return err
		case err == nil && steps < atOnce:
			continue // somebody else was first, or a step is done
		}
		var refused *RefusedError
		if errors.As(err, &refused) {
			return err
		}
		if err != nil {
			r.obs.leaseError(LeaseError{Op: "initialize", Err: err})
		}
		if err := sleep(ctx, r.clock, retry.next(err), nil); err != nil {
			return err
		}
	}
}

// tryInitialize takes one step and reports whether nothing is left to do.
func (r *run) tryInitialize(ctx context.Context) (done bool, err error) {
	if r.ids.prefix == "" {
		source, err := r.feed.Source(ctx)
		if err != nil {
			return false, fmt.Errorf("identify the container: %w", err)
		}
		if r.opts.LeasePrefixHost != "" {
			source.Host = r.opts.LeasePrefixHost
		}
		r.ids = newRecordIDs(r.opts.Processor, source)
	}
	view, err := r.look(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case view.info == nil:
		return false, r.createInfo(ctx, view)
	case view.info.properties[propScope] != scopeName(r.opts.Scope):
		return false, fmt.Errorf("the leases of processor %q were made for the scope %q, not %q; use another Processor name: %w",
			r.opts.Processor, view.info.properties[propScope], scopeName(r.opts.Scope), ErrPermanent)
	case view.info.State == LeaseSplit:
		return false, r.complete(ctx, *view.info, view.byID())
	}
	return true, nil
}

// propScope keeps the scope the leases tile in the info record; absent is the
// whole key space.
const propScope = "scope"

// scopeName renders a scope, "" for the whole key space.
func scopeName(scope []FeedRange) string {
	if len(scope) == 1 && scope[0].Equal(FullRange()) {
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
func (r *run) createInfo(ctx context.Context, view view) error {
	gaps := inspectTiling(r.opts.Scope, view.leases).gaps
	var children []RangeToken
	if len(gaps) > 0 {
		physical, err := r.feed.Ranges(ctx)
		if err != nil {
			return fmt.Errorf("list ranges: %w", err)
		}
		for _, gap := range gaps {
			parts := cut(gap, physical)
			if !tiles(gap, parts) {
				return fmt.Errorf("the physical ranges %v do not cover %s", physical, gap)
			}
			for _, part := range parts {
				children = append(children, RangeToken{Range: part})
			}
		}
	}
	info := Lease{ID: r.ids.info(), Version: 1, State: LeaseSplit, Timestamp: r.opts.Now()}
	for _, m := range r.remembered { // of leases that are lost: epochs must not begin anew
		info.Epoch = max(info.Epoch, m.epoch)
	}
	if scope := scopeName(r.opts.Scope); scope != "" {
		info.properties = map[string]string{propScope: scope}
	}
	children, since, err := r.position(ctx, children)
	if err != nil {
		return err
	}
	info.Children, info.Since = children, since
	_, err = r.store.Create(ctx, info.encode())
	if err != nil && !errors.Is(err, ErrExists) {
		return fmt.Errorf("create %s: %w", info.ID, err)
	}
	return nil
}

// startMargin is how far before initialisation a repaired gap of a processor
// that started from now begins: more than any two clocks differ.
const startMargin = time.Hour

// position resolves Options.Start for the first leases. since is where a range
// begins whose lease and position are lost later.
func (r *run) position(ctx context.Context, children []RangeToken) (placed []RangeToken, since time.Time, err error) {
	// A run that was initialised before and finds the store emptied goes on from
	// what it remembers rather than skipping what happened since.
	if len(r.remembered) > 0 {
		return r.recall(children), r.opts.Start.since, nil
	}
	switch r.opts.Start.kind {
	case startTime:
		for i := range children {
			children[i].Since = r.opts.Start.since
		}
		return children, r.opts.Start.since, nil
	case startNow:
		since = r.opts.Now().Add(-startMargin)
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(storeParallel)
		for i := range children {
			group.Go(func() error {
				token, err := r.feed.Now(gctx, children[i].Range)
				children[i].Continuation = token
				if err != nil {
					return fmt.Errorf("resolve now for %s: %w", children[i].Range, err)
				}
				if token == "" {
					return fmt.Errorf("resolve now for %s: the feed gave no continuation", children[i].Range)
				}
				return nil
			})
		}
		return children, since, group.Wait()
	case startTokens:
		for _, c := range children {
			parts := placeTokens(c.Range, r.opts.Start.tokens)
			if parts == nil {
				return nil, since, fmt.Errorf("start: the saved tokens do not cover %s: %w", c.Range, ErrPermanent)
			}
			placed = append(placed, parts...)
		}
		return placed, since, nil
	default:
		return children, since, nil
	}
}

// placeTokens cuts a range at the bounds of saved tokens; nil if they do not
// cover it.
func placeTokens(r FeedRange, tokens []RangeToken) []RangeToken {
	ranges := make([]FeedRange, len(tokens))
	for i, t := range tokens {
		ranges[i] = t.Range
	}
	parts := cut(r, ranges)
	if !tiles(r, parts) {
		return nil
	}
	placed := make([]RangeToken, len(parts))
	for i, part := range parts {
		for _, t := range tokens {
			if t.Range.Contains(part) {
				placed[i] = RangeToken{Range: part, Continuation: t.Continuation, Since: t.Since}
			}
		}
	}
	return placed
}

// recall gives ranges the last position this run saw of them.
func (r *run) recall(children []RangeToken) []RangeToken {
	var placed []RangeToken
	for _, c := range children {
		known := make([]RangeToken, 0, len(r.remembered))
		for _, m := range r.remembered {
			if m.Range.Overlaps(c.Range) {
				known = append(known, m.RangeToken)
			}
		}
		if parts := placeTokens(c.Range, known); parts != nil {
			placed = append(placed, parts...)
		} else {
			placed = append(placed, c) // from the beginning: rather again than never
		}
	}
	return placed
}
