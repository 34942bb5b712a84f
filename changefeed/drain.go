package changefeed

import (
	"context"
	"slices"
	"time"
)

// drain hands all leases to the hosts that stay.
//
//	ctx ends ─▶ announce: others poll more often ─▶ stop workers, hand leases off ─▶ gone
//	            └── continue to work ────────────┘  └── wait for handlers, store ──┘
//	 0                              at most 3/5 of DrainTimeout          DrainTimeout
func (r *run) drain(ctx context.Context) {
	began := r.clock.Now()
	r.announceLeaving(context.WithoutCancel(ctx), began)
	r.workers.drain(r.drainPlan().handoff, began.Add(max(0, r.opts.DrainTimeout)))
	r.presence.deleteHeartbeat(context.WithoutCancel(ctx))
}

// announceLeaving announces to the other hosts that this one is about to leave, and
// continues to work until each has listed the leases. From then on they list every
// Options.AcquireFast. Otherwise a released lease would be unowned for up to
// Options.Acquire, because hosts list only that often while nothing changes.
func (r *run) announceLeaving(ctx context.Context, began time.Time) {
	// 6/5, because jitter makes the others' pause up to a fifth longer.
	wait := min(r.opts.Acquire*6/5+r.opts.AcquireFast/2, max(0, r.opts.DrainTimeout)*3/5)
	if wait <= 0 || len(r.workers.all()) == 0 || !r.otherHostStays(began) || r.interval.changing(began.Add(2*r.opts.Acquire)) {
		return
	}
	if !r.presence.write(ctx, heartbeat{Draining: true}, began) {
		return
	}
	end := began.Add(wait)
	for left := end.Sub(r.clock.Now()); left > 0 && len(r.workers.all()) > 0; left = end.Sub(r.clock.Now()) {
		_ = sleep(ctx, r.clock, left, r.relist) // ctx never ends
	}
}

// otherHostStays reports whether the last listing contained another host that stays.
func (r *run) otherHostStays(now time.Time) bool {
	b := r.membership.balanceView(r.last.listing(), tiling{}, now)
	return slices.ContainsFunc(b.hosts, func(h hostKey) bool { return h != r.self }) ||
		slices.ContainsFunc(r.last.hosts, func(h heartbeat) bool { return h.Spare && h.key() != r.self })
}

// drainPlan plans a drain: every lease goes to a host that stays.
func (r *run) drainPlan() balancePlan {
	b := r.membership.balanceView(r.last.listing(), tiling{}, r.clock.Now())
	b.hosts = slices.DeleteFunc(b.hosts, func(h hostKey) bool { return h == r.self })
	if len(b.hosts) == 0 {
		return balancePlan{}
	}
	return balance(b)
}
