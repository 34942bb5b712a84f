package changefeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// cycleState belongs to the goroutine of run.
type cycleState struct {
	sight      sightings
	remembered []memory                // of the leases last seen
	gapSince   map[FeedRange]time.Time // when a gap was first seen, if ever since
	infoGone   time.Time               // when the info record was first missed
	sweepAfter map[string]time.Time    // records whose deletion failed
	heartbeat  *heartbeat              // this host's record, if there is one
	heartETag  string
	heartAt    time.Time        // when it was last written
	fastUntil  time.Time        // AcquireFast until then
	shape      string           // hosts and owners last seen
	twins      map[hostKey]bool // hosts of this name reported already
	lastView   view
	decoded    map[string]Lease // by id, as last listed: spares decoding what did not change
}

// view is one look at all records.
type view struct {
	leases  []Lease // shared with later looks: copy before a change
	info    *Lease
	hosts   []heartbeat
	paused  bool
	refused []RefusedLease
}

// run is Processor.Run once the run is set up.
func (r *run) run(ctx context.Context) error {
	r.gapSince, r.sweepAfter, r.twins = map[FeedRange]time.Time{}, map[string]time.Time{}, map[hostKey]bool{}
	if err := r.initialize(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("changefeed: %w", err)
	}
	retry := backoff{min: r.opts.RetryMin, max: r.opts.Acquire}
	var refused *RefusedError
	for ctx.Err() == nil {
		began := r.clock.Now()
		pause, err := r.cycle(ctx)
		switch {
		case err == nil:
			retry.reset()
		case errors.As(err, &refused) && len(r.owned()) == 0:
			return fmt.Errorf("changefeed: %w", err)
		case ctx.Err() == nil:
			r.obs.leaseError(LeaseError{Op: "cycle", Err: err})
			pause = retry.next(err)
		}
		if r.raced.Swap(false) {
			pause = min(pause, jitter(r.opts.AcquireFast))
		}
		_ = sleep(ctx, r.clock, pause, r.hurried) // the loop's condition asks ctx
		// Many leases that move at once are one reason to look again.
		_ = sleep(ctx, r.clock, began.Add(r.opts.AcquireFast/4).Sub(r.clock.Now()), nil)
	}
	r.drain(ctx)
	return nil
}

// cycle looks at all leases once, decides, and does what was decided. It returns
// the pause until the next look.
func (r *run) cycle(ctx context.Context) (time.Duration, error) {
	v, err := r.look(ctx)
	if err != nil {
		return 0, err
	}
	if len(v.refused) > 0 {
		return 0, &RefusedError{Leases: v.refused}
	}
	now := r.clock.Now()
	if wait, missing := r.missInfo(v, now); missing {
		return wait, nil
	}
	if v.info == nil || v.info.State == LeaseSplit {
		return r.opts.AcquireFast, r.initialize(ctx)
	}
	r.obey(v)
	r.completeSplits(ctx, v)
	tiling := inspectTiling(r.opts.Scope, v.leases)
	r.repair(ctx, v, tiling)
	r.replaceReplayed(ctx, v, tiling)
	r.remember(v, tiling)

	balance := r.balanceView(v, tiling, now)
	plan := balance.plan()
	r.noteShape(balance, now)
	r.obs.balanced(balance.summary(plan))
	r.pass(plan.handoff)
	r.acquire(ctx, v, plan.acquire)
	r.beat(ctx, v, now, balance.spare())
	settled := len(balance.leases) == len(v.leases) && len(tiling.gaps) == 0 && !v.paused
	return r.pause(v, now, settled && balance.alone()), nil
}

// byID is the leases by id.
func (v *view) byID() map[string]Lease {
	leases := make(map[string]Lease, len(v.leases))
	for _, l := range v.leases {
		leases[l.ID] = l
	}
	return leases
}

// look lists and decodes all records of this processor.
func (r *run) look(ctx context.Context) (view, error) {
	var v view
	timed, cancel := context.WithTimeout(ctx, r.opts.Expiry/2)
	defer cancel()
	records, err := r.store.List(timed, r.ids.all())
	if err != nil {
		return v, fmt.Errorf("list leases: %w", err)
	}
	r.sight.observe(records, r.clock.Now())
	decoded := make(map[string]Lease, len(records))
	for _, record := range records {
		switch {
		case record.ID == r.ids.info() || r.ids.isLease(record.ID):
			lease, known := r.decoded[record.ID]
			if !known || lease.ETag != record.ETag {
				if lease, err = decodeLease(record); err != nil {
					v.refused = append(v.refused, RefusedLease{ID: record.ID, Reason: err.Error()})
					continue
				}
			}
			decoded[record.ID] = lease
			if record.ID == r.ids.info() {
				v.info = &lease
			} else {
				v.leases = append(v.leases, lease)
			}
		case record.ID == r.ids.pause():
			v.paused = true
		case r.ids.isHost(record.ID):
			if h, err := decodeHeartbeat(record); err == nil {
				v.hosts = append(v.hosts, h)
			}
		}
	}
	r.decoded = decoded
	return v, nil
}

// obey applies a pause of all hosts, and makes workers look at requests that
// operators wrote into their leases.
func (r *run) obey(v view) {
	if r.paused.Swap(v.paused) != v.paused {
		for _, w := range r.owned() {
			w.nudge()
		}
	}
	for _, l := range v.leases {
		w := r.worker(l.ID)
		if w == nil || l.host() != r.self {
			continue
		}
		if held := w.own.snapshot(); l.ETag != held.ETag && !l.Request.equal(held.Request) {
			w.own.markUrgent() // the write will meet the other's ETag and adopt it
			w.own.wake()
		}
	}
}

// completeSplits carries on what a host that is gone has begun.
func (r *run) completeSplits(ctx context.Context, v view) {
	splits := map[string]bool{}
	for _, l := range v.leases {
		if l.State == LeaseSplit {
			splits[l.ID] = true
		}
	}
	now := r.clock.Now()
	for _, l := range v.leases {
		var err error
		switch {
		case l.State == LeaseSplit && r.worker(l.ID) == nil:
			err = r.complete(ctx, l, v.byID())
		case l.State == LeaseDone, l.State == LeasePending && !splits[l.Parent]:
			if now.After(r.sweepAfter[l.ID]) {
				r.sweepAfter[l.ID] = now.Add(30 * r.opts.Expiry)
				r.sweep(ctx, l)
			}
		}
		if err != nil {
			r.obs.leaseError(LeaseError{Lease: l.ID, Op: "complete split", Err: err})
		}
	}
}

// pass asks workers to give leases to other hosts.
func (r *run) pass(handoffs []handoff) {
	for _, h := range handoffs {
		if w := r.worker(h.lease); w != nil {
			w.ask(ask{stop: true, handoff: h.to, reason: "balance"})
		}
	}
}

// acquire takes leases, several at a time. A lost race is no error.
func (r *run) acquire(ctx context.Context, v view, ids []string) {
	byID := v.byID()
	var group errgroup.Group
	group.SetLimit(storeParallel)
	for _, id := range ids {
		group.Go(func() error {
			r.acquireOne(ctx, byID[id])
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
}

// acquireOne makes this host the owner, if the record is still as it was seen.
// The trust window begins before the request does.
func (r *run) acquireOne(ctx context.Context, l Lease) {
	from, written := l.Owner, l.Timestamp
	l.Owner, l.Incarnation, l.Expiry, l.Most = r.opts.Host, r.incarnation, r.opts.Expiry, r.opts.MaxLeases
	l.Epoch++
	l.Handoff, l.Timestamp = "", r.opts.Now()
	if l.Request.Rewind != nil || l.Request.Retry {
		applyRequest(&l)
	}
	l.Request.Release = false
	clearHealth(&l) // it fails again, or it does not
	began := r.watch().glance()
	timed, cancel := context.WithTimeout(ctx, r.opts.Expiry/4)
	defer cancel()
	etag, err := r.store.Replace(timed, l.encode())
	switch {
	case err == nil:
	case errors.Is(err, ErrETagMismatch), errors.Is(err, ErrNotFound):
		r.hurryAfterRace()
		return
	default:
		if ctx.Err() == nil {
			r.obs.leaseError(LeaseError{Lease: l.ID, Op: "acquire", Err: err})
		}
		return
	}
	l.ETag = etag
	r.obs.leaseAcquired(LeaseAcquired{Lease: l.ID, Range: l.Range, Epoch: l.Epoch, Continuation: l.Continuation, From: from, Written: written})
	r.start(ctx, l, began)
}
