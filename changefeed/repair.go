package changefeed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// memory is what this host last knew of a lease that may be gone.
type memory struct {
	RangeToken
	epoch int64
}

// remember keeps the last known position of every part of the scope, also of
// leases that are gone without a successor: gaps are repaired from it.
func (r *run) remember(v view, t tiling) {
	var known []memory
	var covered []FeedRange
	for _, l := range v.leases {
		switch l.State {
		case LeaseLive:
			known = append(known, memory{RangeToken: l.position(), epoch: l.Epoch})
			covered = append(covered, l.Range)
		case LeaseSplit:
			covered = append(covered, l.Range)
		case LeasePending, LeaseDone:
		}
	}
	for _, m := range r.remembered {
		if len(t.gaps) > 0 && len(m.Range.subtract(covered)) > 0 {
			known = append(known, m)
		}
	}
	r.remembered = known
}

// missInfo reports whether the info record, which nobody deletes, is gone for so
// short a time that a host may still trust a lease that went with it.
func (r *run) missInfo(v view, now time.Time) (wait time.Duration, missing bool) {
	switch {
	case v.info != nil:
		r.infoGone = time.Time{}
		return 0, false
	case r.infoGone.IsZero():
		r.infoGone = now
	}
	if left := r.opts.Expiry - now.Sub(r.infoGone); left > 0 {
		return min(left, r.opts.AcquireFast), true
	}
	return 0, false
}

// repair creates leases for parts of the scope that every look found without one
// for the time a lease is trusted: a single listing is no snapshot, and whoever
// held the lost lease must have noticed. They start at the last position this
// host remembers of them, else where the processor started: never ahead of what
// was delivered.
func (r *run) repair(ctx context.Context, v view, t tiling) {
	seen := map[FeedRange]time.Time{}
	now := r.clock.Now()
	for _, gap := range t.gaps {
		since, before := r.gapSince[gap]
		if !before {
			since = now
		}
		seen[gap] = since
		if now.Sub(since) < r.opts.Expiry {
			continue
		}
		if err := r.fill(ctx, v, gap); err != nil {
			r.obs.leaseError(LeaseError{Op: "repair gap " + gap.String(), Err: err})
		}
	}
	r.gapSince = seen
	for _, pair := range t.overlaps {
		r.obs.leaseError(LeaseError{Lease: pair[0], Op: "check tiling", Err: fmt.Errorf("overlaps %s, and neither contains the other", pair[1])})
	}
}

// fill creates the lease of a gap.
func (r *run) fill(ctx context.Context, v view, gap FeedRange) error {
	from := memory{RangeToken: RangeToken{Range: gap, Since: v.info.Since}}
	for _, known := range r.remembered {
		if known.Range.Contains(gap) {
			from = known
			from.Range = gap
		}
	}
	lease := Lease{
		ID: r.ids.lease(gap), Version: 1, Token: gap.String(), Range: gap, Mode: modeIncremental,
		Continuation: from.Continuation, Since: from.Since, Epoch: from.epoch, Timestamp: r.opts.Now(),
	}
	_, err := r.store.Create(ctx, lease.encode())
	if errors.Is(err, ErrExists) {
		err = r.revive(ctx, lease)
	}
	if err != nil {
		return err
	}
	r.obs.gapRepaired(GapRepaired{Range: gap, From: from.RangeToken})
	r.hurry()
	return nil
}

// revive turns a record that stands for nothing any more into the lease of a
// gap; its id is the gap's.
func (r *run) revive(ctx context.Context, lease Lease) error {
	record, err := r.store.Read(ctx, lease.ID)
	if err != nil {
		return fmt.Errorf("read lease %s: %w", lease.ID, err)
	}
	stored, err := decodeLease(record)
	if err != nil {
		return fmt.Errorf("read lease %s: %w", lease.ID, err)
	}
	if stored.State != LeaseDone && stored.State != LeasePending {
		return nil // it is there after all
	}
	lease.ETag, lease.Epoch = stored.ETag, max(lease.Epoch, stored.Epoch)+1
	if _, err := r.store.Replace(ctx, lease.encode()); err != nil && !errors.Is(err, ErrETagMismatch) {
		return fmt.Errorf("revive lease %s: %w", lease.ID, err)
	}
	return nil
}

// replaceReplayed retires leases that contain narrower ones. What those leave
// open goes on from the wide lease's checkpoint. A lease another host holds is
// that host's to retire.
func (r *run) replaceReplayed(ctx context.Context, v view, t tiling) {
	for _, l := range v.leases {
		rest, replayed := t.replaced[l.ID]
		if !replayed {
			continue
		}
		if w := r.worker(l.ID); w != nil {
			w.ask(ask{stop: true, replace: true, rest: rest, reason: "replaced by narrower leases"})
			continue
		}
		now := r.clock.Now()
		if l.Owner != "" && l.host() != r.self && r.sight.age(l.ID, now) < max(r.opts.Expiry, l.Expiry) {
			continue
		}
		l.Epoch++
		l.replaceBy(rest)
		l.Timestamp = r.opts.Now()
		etag, err := r.store.Replace(ctx, l.encode())
		switch {
		case errors.Is(err, ErrETagMismatch), errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			r.obs.leaseError(LeaseError{Lease: l.ID, Op: "replace", Err: err})
			continue
		}
		l.ETag = etag
		r.obs.rangeSplit(RangeSplit{Lease: l.ID, Range: l.Range, Children: rest})
		if err := r.complete(ctx, l, v.byID()); err != nil {
			r.obs.leaseError(LeaseError{Lease: l.ID, Op: "complete split", Err: err})
		}
	}
}
