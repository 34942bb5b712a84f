package changefeed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// This file turns what a cycle saw into the balancer's view: who is alive, which
// leases are free, and what this host tells the others about itself.

// handoffGrace is how many cycles a lease waits for the host it is meant for,
// and a free one for the host whose turn it is.
const handoffGrace = 2

// fastFor is how long cycles stay fast after something changed.
const fastFor = time.Minute

// plan balances the view.
func (v *balanceView) plan() balancePlan { return balance(*v) }

// summary is what observers are told of a look at all leases.
func (v *balanceView) summary(plan balancePlan) Balanced {
	b := Balanced{
		Hosts: len(v.hosts), Leases: len(v.leases), Owned: v.held(),
		Acquire: len(plan.acquire), Handoff: len(plan.handoff),
	}
	for _, l := range v.leases {
		if l.owner == "" {
			b.Free++
		}
	}
	return b
}

// balanceView is the balancer's input.
func (r *run) balanceView(v view, t tiling, now time.Time) balanceView {
	r.lastView = v
	b := balanceView{self: r.self, least: r.opts.MinLeases, most: map[hostKey]int{r.self: r.opts.MaxLeases}}
	alive := map[hostKey]bool{r.self: true} // and whether it has shown life of late
	for _, h := range v.hosts {
		id := r.ids.host(h.Host, h.Incarnation)
		expiry := max(r.opts.Expiry, time.Duration(h.ExpiryMS)*time.Millisecond)
		if h.Draining && r.sight.age(id, now) < expiry {
			b.leaving = append(b.leaving, h.key())
		}
		if h.key() == r.self || h.Draining || h.Spare || r.sight.age(id, now) >= expiry {
			continue
		}
		alive[h.key()] = alive[h.key()] || r.sight.age(id, now) < expiry/2
		b.most[h.key()] = h.Most
		r.meet(h.key(), id)
	}
	grace := handoffGrace * r.opts.Acquire
	for _, l := range v.leases {
		if l.State != LeaseLive {
			continue
		}
		if _, replayed := t.replaced[l.ID]; replayed {
			continue
		}
		b.leases = append(b.leases, r.balanceLease(&l, now, grace))
		if owner := b.leases[len(b.leases)-1].owner; owner != "" {
			alive[owner] = alive[owner] || r.sight.age(l.ID, now) < max(r.opts.Expiry, l.Expiry)/2
			if owner != r.self {
				b.most[owner] = l.Most
				r.meet(owner, l.ID)
			}
		}
	}
	for h, fresh := range alive {
		if !slices.Contains(b.leaving, h) {
			b.hosts = append(b.hosts, h)
		}
		if !fresh {
			b.quiet = append(b.quiet, h)
		}
	}
	slices.Sort(b.hosts)
	slices.Sort(b.leaving)
	return b
}

// balanceLease judges one live lease.
func (r *run) balanceLease(l *Lease, now time.Time, grace time.Duration) balanceLease {
	age := r.sight.age(l.ID, now)
	b := balanceLease{id: l.ID, owner: l.host(), handoff: l.Handoff, previous: l.Previous}
	w := r.worker(l.ID)
	switch {
	case w != nil:
		// Whatever a listing shows, the worker knows best: its next write finds
		// out if the lease is another's.
		b.owner, b.handoff, b.busy = r.self, "", w.inHand()
	case b.owner == r.self:
		b.owner = "" // lost and given up on; nobody has taken it
	case b.owner != "":
		if age >= max(r.opts.Expiry, l.Expiry) {
			b.owner, b.handoff, b.previous = "", "", l.Owner
			b.waiting = age >= max(r.opts.Expiry, l.Expiry)+grace
		}
	default:
		if age >= grace {
			b.handoff, b.waiting = "", true
		}
	}
	return b
}

// meet reports another process of this host's name, once it shows that it lives.
func (r *run) meet(h hostKey, record string) {
	if h.name() != r.opts.Host || r.twins[h] || !r.sight.changed(record) {
		return
	}
	r.twins[h] = true
	_, incarnation, _ := strings.Cut(string(h), "/")
	r.obs.duplicateHost(DuplicateHost{Host: r.opts.Host, Incarnation: incarnation})
}

// noteShape makes cycles fast while the set of hosts or owners changes.
func (r *run) noteShape(b balanceView, now time.Time) {
	var shape strings.Builder
	for _, h := range b.hosts {
		shape.WriteString(string(h))
		shape.WriteByte(' ')
	}
	for _, h := range b.leaving {
		shape.WriteString(string(h))
		shape.WriteByte('-')
	}
	slices.SortFunc(b.leases, func(x, y balanceLease) int { return strings.Compare(x.id, y.id) })
	for _, l := range b.leases {
		shape.WriteString(string(l.owner))
		shape.WriteByte(' ')
	}
	if s := shape.String(); s != r.shape {
		r.shape = s
		r.fastUntil = now.Add(fastFor)
	}
}

// pause is the time until the next cycle: short while things change, and never
// past the moment at which a lease or host that is not renewed counts as gone. A host
// alone has nothing to find out: the end of a worker of its own hurries the cycle.
func (r *run) pause(v view, now time.Time, alone bool) time.Duration {
	d := r.opts.Acquire
	switch {
	case now.Before(r.fastUntil):
		d = r.opts.AcquireFast
	case alone:
		d = max(d, 2*r.opts.Expiry)
	}
	d = jitter(d)
	now = r.clock.Now()
	for _, l := range v.leases {
		if l.State != LeaseLive || l.Owner == "" || l.host() == r.self {
			continue
		}
		if left := max(r.opts.Expiry, l.Expiry) - r.sight.age(l.ID, now); left > 0 {
			d = min(d, left)
		}
	}
	return max(d, time.Millisecond)
}

// hurryAfterRace: another host changed a lease this one wanted, so the view is
// out of date.
func (r *run) hurryAfterRace() { r.raced.Store(true) }

// beat writes this host's heartbeat while it is due something and owns nothing, so
// that others count it, and removes it once its leases speak for it. A spare host
// would change nobody's plan by being counted: when a lease becomes free the spare
// hosts race for it, and its ETag decides. In calm it says once that it is there, so
// that a host that leaves tells it (see announce).
func (r *run) beat(ctx context.Context, v view, now time.Time, spare bool) {
	defer r.sweepHosts(ctx, v, now)
	if len(r.owned()) > 0 {
		if r.heartbeat != nil && r.visible(v) {
			r.unbeat(ctx)
		}
		return
	}
	every := r.opts.Renew
	if spare {
		if r.heartbeat == nil && now.Before(r.fastUntil) {
			return
		}
		every = spareExpiries / 2 * r.opts.Expiry
	}
	if r.heartbeat != nil && r.heartbeat.Spare == spare && now.Sub(r.heartAt) < every {
		return
	}
	r.writeHeartbeat(ctx, heartbeat{Spare: spare}, now)
}

// spareExpiries is after how many times Expiry without a word a spare host is gone. It
// costs a host that leaves a short wait to believe too long in it, and nobody anything else.
const spareExpiries = 100

// writeHeartbeat writes this host's record and reports whether it stands.
func (r *run) writeHeartbeat(ctx context.Context, h heartbeat, now time.Time) bool {
	h.ID, h.Host, h.Incarnation = r.ids.host(r.opts.Host, r.incarnation), r.opts.Host, r.incarnation
	h.ExpiryMS, h.Most = r.opts.Expiry.Milliseconds(), r.opts.MaxLeases
	h.Timestamp = r.opts.Now().UTC().Format(timestampFormat)
	timed, cancel := context.WithTimeout(ctx, r.opts.Expiry/4)
	defer cancel()
	var etag string
	var err error
	if r.heartbeat == nil {
		etag, err = r.store.Create(timed, h.encode(""))
	} else {
		etag, err = r.store.Replace(timed, h.encode(r.heartETag))
	}
	switch {
	case err == nil:
		r.heartbeat, r.heartETag, r.heartAt = &h, etag, now
		return true
	case errors.Is(err, ErrNotFound):
		r.heartbeat = nil
	case errors.Is(err, ErrExists), errors.Is(err, ErrETagMismatch):
		// An answer got lost: the record is this host's own, no other has its id.
		if record, err := r.store.Read(timed, h.ID); err == nil {
			r.heartbeat, r.heartETag = &h, record.ETag
		}
	default:
		r.obs.leaseError(LeaseError{Op: "heartbeat", Err: err})
	}
	return false
}

// visible reports whether the last look showed a lease of this host.
func (r *run) visible(v view) bool {
	return slices.ContainsFunc(v.leases, func(l Lease) bool { return l.host() == r.self })
}

func (r *run) unbeat(ctx context.Context) {
	timed, cancel := context.WithTimeout(ctx, r.opts.Expiry/4)
	defer cancel()
	err := r.store.Delete(timed, r.heartbeat.ID, r.heartETag)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrETagMismatch) {
		r.obs.leaseError(LeaseError{Op: "heartbeat", Err: err})
	}
	r.heartbeat = nil // one that stays counts as gone soon, and is swept by others
}

// sweepHosts deletes heartbeats of hosts that are long gone.
func (r *run) sweepHosts(ctx context.Context, v view, now time.Time) {
	for _, h := range v.hosts {
		id := r.ids.host(h.Host, h.Incarnation)
		gone := 10 * r.opts.Expiry
		if h.Spare {
			gone = spareExpiries * r.opts.Expiry
		}
		if h.key() == r.self || r.sight.age(id, now) < gone || now.Before(r.sweepAfter[id]) {
			continue
		}
		r.sweepAfter[id] = now.Add(30 * r.opts.Expiry)
		timed, cancel := context.WithTimeout(ctx, r.opts.Expiry/4)
		_ = r.store.Delete(timed, id, r.sight.seen[id].etag) // somebody will
		cancel()
	}
}
