package changefeed

import (
	"context"
	"errors"
	"slices"
	"time"
)

// cycle lists all leases once, decides, and carries out the decisions. It returns the pause
// until the next cycle.
func (r *run) cycle(ctx context.Context) (time.Duration, error) {
	seen, err := r.lister.list(ctx)
	if err != nil {
		return 0, err
	}
	if len(seen.refused) > 0 {
		return 0, &RefusedError{Leases: seen.refused}
	}
	r.findInfo(ctx, &seen)
	now := r.clock.Now()
	if wait, missing := r.gaps.infoMissing(seen, now); missing && r.initialized() {
		return wait, nil
	}
	if pause := r.leaveInitialization(seen, now); pause > 0 {
		// Otherwise the other host would count itself alone and acquire all leases.
		r.presence.updateHeartbeat(ctx, seen, now, len(r.workers.all()) > 0, false, true)
		return pause, nil
	}
	if done, err := r.initialize(ctx, seen); !done {
		return 0, err
	}
	seen.paused = r.paused(ctx, seen)
	r.forwardRequests(seen)
	r.completeSplits(ctx, seen)
	tiling := inspectTiling(r.opts.Scope, seen.leases)
	r.gaps.repair(ctx, seen, tiling)
	r.replaceReplayed(ctx, seen, tiling)
	r.last.keep(seen)
	r.gaps.remember(r.last.leases, tiling)

	view := r.membership.balanceView(seen, tiling, now)
	plan := balance(view)
	_, due := view.dues()
	r.opts.Siblings.note(r.sibling, due)
	r.membership.reportDuplicates(seen, now)
	r.interval.observe(view, now)
	notify(r.obs.Balanced, Balanced{Hosts: len(view.hosts), Leases: len(view.leases), Owned: view.held()})
	for lease, to := range plan.handoff {
		if w := r.workers.of(lease); w != nil {
			w.stop(stopOrder{handoff: to, reason: "balance"})
		}
	}
	r.releaseUnread(seen, view, now)
	r.vacancies.observe(seen, tiling, view, now)
	r.acquire(ctx, seen, plan.acquire)
	r.presence.updateHeartbeat(ctx, seen, now, len(r.workers.all()) > 0, view.spare(), r.interval.changing(now))
	settled := len(view.leases) == len(seen.leases) && len(tiling.gaps) == 0 && !seen.paused
	return r.interval.next(seen, &r.lister.etags, settled && view.alone()), nil
}

// paused reports whether all hosts are paused. A listing without the record of the pause may come from a delayed
// replica, so at the start and at the end of a pause the store must deny that there is one. A write is not answered
// by such a replica: with the ETag of another record it fails in one way if there is a pause, and in another if not.
func (r *run) paused(ctx context.Context, seen listing) bool {
	r.unpaused = r.unpaused && !seen.paused
	if seen.paused || r.unpaused || seen.info == nil {
		return seen.paused
	}
	pause := pauseRecord(r.ids, r.opts.Now())
	pause.ETag = seen.info.ETag
	_, err := r.store.Replace(ctx, pause)
	if r.unpaused = errors.Is(err, ErrNotFound); !r.unpaused && !errors.Is(err, ErrETagMismatch) {
		r.reportError("", "check the pause of all leases", err)
	}
	return !r.unpaused
}

// forwardRequests applies a pause of all hosts, and makes workers check requests that
// operators wrote into their leases.
func (r *run) forwardRequests(seen listing) {
	r.workers.pause(seen.paused)
	for _, l := range seen.leases {
		w := r.workers.of(l.ID)
		if w == nil {
			continue
		}
		held := w.keeper.snapshot()
		if l.ETag != held.ETag && (l.ownerKey() != r.self || !l.Request.equal(held.Request)) {
			w.keeper.rewrite() // its write conflicts with the other's ETag: the keeper adopts the request or loses the lease
		}
	}
}

func (r *run) completeSplits(ctx context.Context, seen listing) {
	now := r.clock.Now()
	for _, l := range seen.leases {
		switch l.State {
		case LeaseSplit:
			if r.workers.of(l.ID) == nil { // otherwise the worker completes it
				r.reportError(l.ID, "complete split", r.splits.complete(ctx, l, seen.byID()))
			}
		case LeaseDone, LeasePending:
			if r.swept.tryNow(l.ID, now, 30*r.opts.Expiry) {
				r.splits.sweep(ctx, l)
			}
		case LeaseLive:
		}
	}
}

// acquire acquires leases, several at a time. A lost race is no error.
func (r *run) acquire(ctx context.Context, seen listing, ids []string) {
	if len(ids) == 0 {
		return
	}
	byID := seen.byID()
	_ = inParallel(len(ids), func(i int) error {
		r.acquireOne(ctx, byID[ids[i]])
		return nil
	})
}

// acquireOne makes this host the owner if the record has not changed since it was listed.
// The trust window begins before the request does, because the store may write the record at
// any time after that.
func (r *run) acquireOne(ctx context.Context, l Lease) {
	from := l.Owner
	if l.LastRead.IsZero() {
		l.LastRead = l.Timestamp
	}
	if termChanged(l.Term, l.loaded) {
		l.History = newHistory()
	}
	l.Owner, l.Incarnation, l.Expiry = r.opts.Host, r.incarnation, r.opts.Expiry
	l.Epoch++
	l.Handoff, l.Timestamp, l.foreign, l.takenOver = "", r.opts.Now(), false, false
	if from != "" && from != l.Owner {
		l.Previous = from // it did not release the lease, so it has not written this itself
	}
	if l.Request.Rewind != nil || l.Request.Retry {
		applyRequest(&l)
	}
	l.Request.Release, l.Backlog = false, l.Backlog || l.Continuation == ""
	if l.Health == Stopped {
		l.Health = Retrying // the next deliveries decide; until then the cause stays
	}
	began := r.workers.clocks().read()
	if err := l.replace(ctx, r.store); err != nil {
		if ctx.Err() == nil {
			r.reportError(l.ID, "acquire", unlessLostRace(err))
		}
		return
	}
	notify(r.obs.LeaseAcquired, LeaseAcquired{LeaseRef: l.ref(), Continuation: l.Continuation, From: from, LastRead: l.LastRead})
	r.workers.start(ctx, l, began)
}

// interval computes how often this host lists the leases.
type interval struct {
	*env
	fastUntil time.Time // fast until then
	// The last view.
	hosts, leaving []hostKey
	leases         int
	owners         uint64 // hash of the owner of each lease
}

// fastFor is how long cycles stay fast after a change.
const fastFor = time.Minute

// perRecord bounds the listings of a fleet while it changes to a million records a second, some
// 120,000 request units. A thousand hosts that list ten thousand leases every AcquireFast read
// twenty times as many, which is more than a container of Azure Cosmos DB serves by default.
const perRecord = time.Microsecond

// fast returns the time between listings while things change.
func (p *interval) fast() time.Duration {
	all := time.Duration(len(p.hosts)*p.leases) * perRecord
	return min(max(p.opts.AcquireFast, all), p.opts.Acquire)
}

func (p *interval) changing(now time.Time) bool { return now.Before(p.fastUntil) }

// observe makes cycles fast while the set of hosts or owners changes.
func (p *interval) observe(b balanceView, now time.Time) {
	var owners uint64
	for _, l := range b.leases {
		owners += hash(l.id + " " + string(l.owner)) // a sum does not depend on their order
	}
	if !slices.Equal(b.hosts, p.hosts) || !slices.Equal(b.leaving, p.leaving) || len(b.leases) != p.leases || owners != p.owners {
		p.hosts, p.leaving, p.leases, p.owners, p.fastUntil = b.hosts, b.leaving, len(b.leases), owners, now.Add(fastFor)
	}
}

// next returns the time until the next cycle. It is short while things change, and never
// extends past the expiry of another host's lease. A host alone has nothing to watch for,
// because the end of one of its own workers triggers a cycle.
func (p *interval) next(seen listing, etags *etagHistory, alone bool) time.Duration {
	now, d := p.clock.Now(), p.opts.Acquire
	switch {
	case p.changing(now):
		d = p.fast()
	case alone:
		d = max(d, 2*p.opts.Expiry)
	}
	d = jitter(d)
	for _, l := range seen.leases {
		if l.ownerKey() == p.self {
			continue
		}
		if left := l.lifetime(p.opts.Expiry) - etags.unchangedFor(l.ID, now); left > 0 {
			d = min(d, left)
		}
	}
	return max(d, time.Millisecond)
}
