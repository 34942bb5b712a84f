package changefeed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// gaps finds parts of the scope without a lease, and fills them.
type gaps struct {
	*env
	remembered packedLeases            // of the last listing
	lost       []Lease                 // the last known leases of parts without one
	since      map[FeedRange]time.Time // when a current gap was first seen
	infoGone   time.Time               // when the info record was first missing
}

// remember keeps the last known lease of every part of the scope, also if the lease is gone
// without a successor. A gap is repaired from its position.
func (g *gaps) remember(listed packedLeases, t tiling) {
	var lost []Lease
	if len(t.gaps) > 0 {
		for _, l := range g.known() {
			if slices.ContainsFunc(t.gaps, l.Range.Overlaps) {
				lost = append(lost, l)
			}
		}
	}
	g.remembered, g.lost = listed, lost
}

// known returns the last known lease of every part of the scope.
func (g *gaps) known() []Lease {
	live := slices.DeleteFunc(g.remembered.unpack(), func(l Lease) bool { return l.State != LeaseLive })
	return append(live, g.lost...)
}

// infoMissing reports whether the info record, which no host deletes, has been missing for
// so short a time that a host may still trust a lease that was deleted with it.
func (g *gaps) infoMissing(seen listing, now time.Time) (wait time.Duration, missing bool) {
	switch {
	case seen.info != nil:
		g.infoGone = time.Time{}
		return 0, false
	case g.infoGone.IsZero():
		g.infoGone = now
	}
	if left := g.opts.Expiry - now.Sub(g.infoGone); left > 0 {
		return min(left, g.opts.AcquireFast), true
	}
	return 0, false
}

// repair creates leases for parts of the scope that had none in every listing for Expiry.
// It waits because one listing is not a snapshot, and because the owner of the lost lease
// must have noticed by then.
func (g *gaps) repair(ctx context.Context, seen listing, t tiling) {
	still := map[FeedRange]time.Time{}
	now := g.clock.Now()
	known := sync.OnceValue(g.known)
	for _, gap := range t.gaps {
		since, before := g.since[gap]
		if !before {
			since = now
		}
		still[gap] = since
		if now.Sub(since) < g.opts.Expiry {
			continue
		}
		g.reportError("", "repair gap "+gap.String(), g.fill(ctx, seen, gap, known()))
	}
	g.since = still
	for _, pair := range t.overlaps {
		g.reportError(pair[0], OpCheckTiling, fmt.Errorf("overlaps %s, and neither contains the other", LeaseName(pair[1])))
	}
}

// fill creates the leases of a gap at the last positions this host remembers of its parts, else at
// the processor's start: never ahead of the delivered changes.
func (g *gaps) fill(ctx context.Context, seen listing, gap FeedRange, remembered []Lease) error {
	remembered = slices.DeleteFunc(slices.Clone(remembered), func(l Lease) bool { return l.loaded != seen.info.loaded })
	parts, rest := recall(gap, remembered)
	for _, r := range rest {
		parts = append(parts, Lease{Range: r, Since: seen.info.Since, Epoch: seen.info.Epoch, History: seen.info.History})
	}
	return inParallel(len(parts), func(i int) error { return g.create(ctx, parts[i]) })
}

// recall returns the remembered leases of the parts of a gap, cut to it, and the other parts. A gap
// may have several: neighbors that were lost together, or that one listing lacks.
func recall(gap FeedRange, remembered []Lease) (parts []Lease, rest []FeedRange) {
	rest = []FeedRange{gap}
	for _, known := range slices.Backward(remembered) {
		var left []FeedRange
		for _, r := range rest {
			if part := known; r.Overlaps(known.Range) {
				part.Range = r.Intersect(known.Range)
				parts = append(parts, part)
			}
			left = append(left, r.subtract([]FeedRange{known.Range})...)
		}
		rest = left
	}
	return parts, rest
}

// create creates the lease of a part of a gap, at the position of from.
func (g *gaps) create(ctx context.Context, from Lease) error {
	gap := from.Range
	lease := Lease{
		ID: g.ids.lease(gap), Version: 1, Token: gap.String(), Range: gap, Mode: modeIncremental,
		Continuation: from.Continuation, Since: from.Since, Epoch: from.Epoch, History: from.History, Timestamp: g.opts.Now(),
		// Otherwise a container that lost changes would be read on as if it had none.
		LSN: from.LSN, ChangeTime: from.ChangeTime, LastRead: from.LastRead, Backlog: from.Backlog,
		Reached: from.Reached, Term: from.Term, Lost: from.Lost,
		Request: from.request(gap),
	}
	_, err := g.store.Create(ctx, lease.encode())
	if errors.Is(err, ErrExists) {
		err = g.revive(ctx, lease)
	}
	if err != nil {
		return unlessLostRace(err)
	}
	notify(g.obs.GapRepaired, GapRepaired{Range: gap, From: lease.position()})
	g.relist.send()
	return nil
}

// revive turns a record that is not needed any more into the lease of a gap with the same
// id. ErrETagMismatch means that the lease exists after all.
func (g *gaps) revive(ctx context.Context, lease Lease) error {
	stored, err := readLease(ctx, g.store, lease.ID)
	if err != nil {
		return err
	}
	if stored.State != LeaseDone && stored.State != LeasePending {
		return ErrETagMismatch
	}
	lease.ETag, lease.Epoch = stored.ETag, max(lease.Epoch, stored.Epoch)+1
	return lease.replace(ctx, g.store)
}

// replaceReplayed retires leases that contain narrower ones. The parts outside those
// continue from the wide lease's checkpoint. A lease of another host is left to that host.
func (r *run) replaceReplayed(ctx context.Context, seen listing, t tiling) {
	for _, l := range seen.leases {
		rest, replayed := t.replaced[l.ID]
		if !replayed {
			continue
		}
		if w := r.workers.of(l.ID); w != nil {
			w.stop(stopOrder{replace: true, rest: rest, reason: "replaced by narrower leases"})
			continue
		}
		now := r.clock.Now()
		if l.ownerKey() != r.self && r.lister.etags.unchangedFor(l.ID, now) < l.lifetime(r.opts.Expiry) {
			continue
		}
		l.replaceBy(rest)
		l.Timestamp = r.opts.Now()
		if err := l.replace(ctx, r.store); err != nil {
			r.reportError(l.ID, "replace", unlessLostRace(err))
			continue
		}
		notify(r.obs.RangeSplit, RangeSplit{LeaseRef: l.ref(), Children: rest})
		r.reportError(l.ID, "complete split", r.splits.complete(ctx, l, seen.byID()))
	}
}
