package changefeed

import (
	"errors"
	"time"
)

// releaseUnread releases the leases of ranges that this host cannot read.
func (r *run) releaseUnread(seen listing, view balanceView, now time.Time) {
	for _, w := range r.workers.all() {
		if w.givesUp(now) {
			w.stop(stopOrder{handoff: r.otherHost(seen, view, now), reason: "the feed does not reply"})
		}
	}
}

// otherHost returns the host to try next: a spare one, else the one with the fewest leases.
// The balancer alone would often choose this host again, which then is below its share.
func (r *run) otherHost(seen listing, view balanceView, now time.Time) (other hostKey) {
	for _, h := range seen.hosts {
		alive := r.lister.etags.unchangedFor(r.ids.host(h.Host, h.Incarnation), now) < spareExpiries*r.opts.Expiry
		if h.Spare && alive && h.key() != r.self {
			return h.key()
		}
	}
	has, _ := view.dues()
	for _, h := range view.hosts {
		if h != r.self && (other == "" || has[h] < has[other]) {
			other = h
		}
	}
	return other
}

// vacancies reports the parts of the scope that no host owns.
type vacancies struct {
	*env
	last map[LeaseRef]vacancy
}

// vacancy is a part of the scope that had no owner in the last cycle.
type vacancy struct {
	since  time.Time // when it was first seen without an owner
	report time.Time // when it is to be reported next
}

func (v *vacancies) observe(seen listing, t tiling, view balanceView, now time.Time) {
	still := map[LeaseRef]vacancy{}
	vacant := func(ref LeaseRef, why error) {
		e, before := v.last[ref]
		if !before {
			e = vacancy{since: now, report: now.Add(v.opts.unreadAfter())}
		}
		if !now.Before(e.report) {
			notify(v.obs.RangeUnread, RangeUnread{LeaseRef: ref, For: now.Sub(e.since), Err: why})
			e.report = now.Add(v.opts.unreadAfter())
		}
		still[ref] = e
	}
	for _, gap := range t.gaps {
		vacant(LeaseRef{Range: gap}, errors.New("no lease covers the range"))
	}
	owned := map[string]bool{}
	for _, l := range view.leases {
		owned[l.id] = l.owner != ""
	}
	for _, l := range seen.leases {
		_, replayed := t.replaced[l.ID]
		switch {
		case replayed:
		case l.State == LeaseSplit:
			vacant(l.ref(), errors.New("the split of the lease is not completed"))
		case l.State == LeaseLive && !owned[l.ID]:
			vacant(l.ref(), errors.New("no host owns the lease"))
		}
	}
	v.last = still
}
