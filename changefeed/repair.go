package changefeed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// gaps finds parts of the scope that no lease stands for, and fills them.
type gaps struct {
	*env
	remembered []Lease                 // those last seen of every part
	since      map[FeedRange]time.Time // when a gap was first seen, if ever since
	infoGone   time.Time               // when the info record was first missed
}

// remember keeps the lease last seen of every part of the scope, also one that is gone
// without a successor: gaps are repaired from its position.
func (g *gaps) remember(seen listing, t tiling) {
	var known []Lease
	for _, l := range seen.leases {
		if l.State == LeaseLive {
			known = append(known, l)
		}
	}
	for _, l := range g.remembered {
		if len(t.gaps) > 0 && len(l.Range.subtract(t.covered)) > 0 {
			known = append(known, l)
		}
	}
	g.remembered = known
}

// missInfo reports whether the info record, which nobody deletes, is gone for so
// short a time that a host may still trust a lease that went with it.
func (g *gaps) missInfo(seen listing, now time.Time) (wait time.Duration, missing bool) {
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

// repair creates leases for parts of the scope that every listing found without one
// for the time a lease is trusted: one listing is no snapshot, and whoever held the
// lost lease must have noticed.
func (g *gaps) repair(ctx context.Context, seen listing, t tiling) {
	still := map[FeedRange]time.Time{}
	now := g.clock.Now()
	for _, gap := range t.gaps {
		since, before := g.since[gap]
		if !before {
			since = now
		}
		still[gap] = since
		if now.Sub(since) < g.opts.Expiry {
			continue
		}
		g.reportError("", "repair gap "+gap.String(), g.fill(ctx, seen, gap))
	}
	g.since = still
	for _, pair := range t.overlaps {
		g.reportError(pair[0], OpCheckTiling, fmt.Errorf("overlaps %s, and neither contains the other", LeaseName(pair[1])))
	}
}

// fill creates the lease of a gap, at the last position this host remembers of it, else
// where the processor started: never ahead of what was delivered.
func (g *gaps) fill(ctx context.Context, seen listing, gap FeedRange) error {
	from := Lease{Since: seen.info.Since}
	for _, known := range g.remembered {
		if known.Range.Contains(gap) {
			from = known
		}
	}
	lease := Lease{
		ID: g.ids.lease(gap), Version: 1, Token: gap.String(), Range: gap, Mode: modeIncremental,
		Continuation: from.Continuation, Since: from.Since, Epoch: from.Epoch, Timestamp: g.opts.Now(),
	}
	_, err := g.store.Create(ctx, lease.encode())
	if errors.Is(err, ErrExists) {
		err = g.revive(ctx, lease)
	}
	if err != nil {
		return unlessLostRace(err)
	}
	tell(g.obs.GapRepaired, GapRepaired{Range: gap, From: lease.position()})
	g.relist.send()
	return nil
}

// revive turns a record that stands for nothing any more into the lease of a
// gap; its id is the gap's. ErrETagMismatch: the lease is there after all.
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

// replaceReplayed retires leases that contain narrower ones. What those leave
// open goes on from the wide lease's checkpoint. A lease another host holds is
// that host's to retire.
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
		tell(r.obs.RangeSplit, RangeSplit{LeaseRef: l.ref(), Children: rest})
		r.reportError(l.ID, "complete split", r.splits.complete(ctx, l, seen.byID()))
	}
}
