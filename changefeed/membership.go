package changefeed

import (
	"slices"
	"time"
)

// membership turns what a cycle saw into the balancer's view: who is alive, and which
// leases are free.
type membership struct {
	*env
	etags   *etagHistory
	workers *workers
	twins   map[hostKey]bool // hosts of this name reported already
}

// handoffGrace is how many cycles a lease waits for the host it is meant for,
// and a free one for the host whose turn it is.
const handoffGrace = 2

// reserved is whom a free lease waits for that must not be acquired yet: nobody.
const reserved hostKey = "/"

func (m *membership) balanceView(seen listing, t tiling, now time.Time) balanceView {
	b := balanceView{self: m.self}
	alive := map[hostKey]bool{m.self: true} // and whether it has shown life of late
	for _, h := range seen.hosts {
		id := m.ids.host(h.Host, h.Incarnation)
		expiry := max(m.opts.Expiry, time.Duration(h.ExpiryMS)*time.Millisecond)
		if h.Draining && m.etags.unchangedFor(id, now) < expiry {
			b.leaving = append(b.leaving, h.key())
		}
		if h.key() == m.self || h.Draining || h.Spare || m.etags.unchangedFor(id, now) >= expiry {
			continue
		}
		alive[h.key()] = m.etags.unchangedFor(id, now) < expiry/2
	}
	grace := handoffGrace * m.opts.Acquire
	for _, l := range seen.leases {
		if l.State != LeaseLive {
			continue
		}
		if _, replayed := t.replaced[l.ID]; replayed {
			continue
		}
		b.leases = append(b.leases, m.balanceLease(&l, now, grace))
		if owner := b.leases[len(b.leases)-1].owner; owner != "" {
			alive[owner] = alive[owner] || m.etags.unchangedFor(l.ID, now) < l.lifetime(m.opts.Expiry)/2
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
func (m *membership) balanceLease(l *Lease, now time.Time, grace time.Duration) balanceLease {
	age := m.etags.unchangedFor(l.ID, now)
	b := balanceLease{id: l.ID, owner: l.ownerKey(), handoff: l.Handoff, previous: l.Previous}
	w := m.workers.of(l.ID)
	switch {
	case w != nil:
		// Whatever a listing shows, the worker knows best: its next write finds
		// out if the lease is another's.
		b.owner, b.handoff, b.busy = m.self, "", w.inHand()
	case b.owner == m.self:
		b.owner = "" // lost and given up on; nobody has taken it
	case b.owner != "":
		if lifetime := l.lifetime(m.opts.Expiry); age >= lifetime {
			b.owner, b.handoff, b.previous = "", "", l.Owner
			b.waiting = age >= lifetime+grace
		}
	case age < l.lifetime(m.opts.Expiry):
		b.handoff = reserved
	case age >= grace:
		b.handoff, b.waiting = "", true
	}
	return b
}

// reportTwins reports other processes of this host's name, each once it shows that it
// lives.
func (m *membership) reportTwins(seen listing, now time.Time) {
	report := func(h hostKey, incarnation, record string) {
		if h == m.self || h.name() != m.opts.Host || m.twins[h] || !m.etags.changed(record) || m.etags.unchangedFor(record, now) >= m.opts.Expiry {
			return
		}
		m.twins[h] = true
		tell(m.obs.DuplicateHost, DuplicateHost{Host: m.opts.Host, Incarnation: incarnation})
	}
	for _, h := range seen.hosts {
		report(h.key(), h.Incarnation, m.ids.host(h.Host, h.Incarnation))
	}
	for _, l := range seen.leases {
		report(l.ownerKey(), l.Incarnation, l.ID)
	}
}
