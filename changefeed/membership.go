package changefeed

import (
	"slices"
	"time"
)

// membership derives the balancer's view from a listing: live hosts and free leases.
type membership struct {
	*env
	etags      *etagHistory
	workers    *workers
	duplicates map[hostKey]bool // hosts of this name that were reported
}

// handoffGrace is the number of cycles a lease waits for the host it is handed to, and a
// free one for the host that should take it.
const handoffGrace = 2

// reserved is the handoff of a free lease that no host may acquire yet.
const reserved hostKey = "/"

func (m *membership) balanceView(seen listing, t tiling, now time.Time) balanceView {
	b := balanceView{self: m.self, before: m.opts.Siblings.before(m.sibling)}
	alive := map[hostKey]bool{m.self: true} // and whether it has shown a sign of life recently
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

func (m *membership) balanceLease(l *Lease, now time.Time, grace time.Duration) balanceLease {
	age := m.etags.unchangedFor(l.ID, now)
	b := balanceLease{id: l.ID, owner: l.ownerKey(), handoff: l.Handoff, previous: l.Previous}
	w := m.workers.of(l.ID)
	switch {
	case w != nil:
		// The worker knows more than a listing: if another host owns the lease, the
		// worker's next write finds out.
		b.owner, b.handoff, b.busy = m.self, "", w.inFlight()
		b.fresh = now.Sub(w.began) < fastFor
	case b.owner == m.self:
		b.owner, b.previous = "", l.Owner // lost and given up, but not taken yet
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

// reportDuplicates reports other processes with this host's name, each once it shows a sign
// of life. Otherwise a restarted host would report its own former process.
func (m *membership) reportDuplicates(seen listing, now time.Time) {
	report := func(h hostKey, incarnation, record string) {
		if h == m.self || h.name() != m.opts.Host || m.duplicates[h] || !m.etags.changed(record) || m.etags.unchangedFor(record, now) >= m.opts.Expiry {
			return
		}
		m.duplicates[h] = true
		notify(m.obs.DuplicateHost, DuplicateHost{Host: m.opts.Host, Incarnation: incarnation})
	}
	for _, h := range seen.hosts {
		report(h.key(), h.Incarnation, m.ids.host(h.Host, h.Incarnation))
	}
	for _, l := range seen.leases {
		report(l.ownerKey(), l.Incarnation, l.ID)
	}
}
