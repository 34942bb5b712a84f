package changefeed

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// The balancer decides, and does nothing: every host gives it the same view and
// gets its own part of the same plan. Where two views differ the ETags decide.

// balanceView is what one host sees.
type balanceView struct {
	self    hostKey
	hosts   []hostKey // alive and not leaving, self included unless it drains
	leaving []hostKey // about to release what they own
	// quiet hosts count as alive, but have shown no life for half an expiry: they are
	// given nothing. A host of which some leases have expired may well be gone.
	quiet  []hostKey
	leases []balanceLease
}

// balanceLease is one live lease.
type balanceLease struct {
	id       string
	owner    hostKey // "" if nobody holds it: released, or its owner's lease expired
	handoff  hostKey // who may take it first, if it is still awaited
	previous string  // name of the last owner
	waiting  bool    // free, and nobody took it for a while: anyone may
	busy     bool    // held by self, with work in hand
}

func (l *balanceLease) free() bool { return l.owner == "" && l.handoff == "" }

// balancePlan is what self should do now.
type balancePlan struct {
	acquire []string           // lease ids, in the order to try
	handoff map[string]hostKey // own leases to pass on, and to whom
}

// balance computes this host's part of the plan.
//
// Every host is due an equal number of leases, give or take one; those that have more
// already get the one more, so that a balanced set never moves.
func balance(v balanceView) balancePlan {
	slices.SortFunc(v.leases, func(a, b balanceLease) int {
		return cmp.Or(cmp.Compare(hashOrder(a.id), hashOrder(b.id)), cmp.Compare(a.id, b.id))
	})
	has, due := v.dues()
	return balancePlan{acquire: v.claims(has, due), handoff: v.surplus(has, due)}
}

// dues counts what each host has, and what it is due.
func (v *balanceView) dues() (has, due map[hostKey]int) {
	has = map[hostKey]int{}
	for _, h := range v.hosts {
		has[h] = 0
	}
	for _, l := range v.leases {
		holder := cmp.Or(l.owner, l.handoff)
		if _, alive := has[holder]; alive {
			has[holder]++
		}
	}
	return has, shares(len(v.leases), has)
}

// spare reports whether self is due nothing: there are hosts enough without it.
func (v *balanceView) spare() bool {
	_, due := v.dues()
	return due[v.self] == 0
}

// alone reports whether no other host matters to self: it holds every lease, and would
// keep them all if another host came.
func (v *balanceView) alone() bool {
	if len(v.leases) == 0 || v.held() < len(v.leases) {
		return false
	}
	has, _ := v.dues()
	const newcomer hostKey = ""
	has[newcomer] = 0
	return shares(len(v.leases), has)[newcomer] == 0
}

// shares is how many of n leases each host is due: equal parts, and the rest to those
// that have most already.
func shares(n int, has map[hostKey]int) map[hostKey]int {
	hosts := slices.Sorted(maps.Keys(has))
	slices.SortStableFunc(hosts, func(a, b hostKey) int { return cmp.Compare(has[b], has[a]) })
	due := make(map[hostKey]int, len(hosts))
	for i, h := range hosts {
		due[h] = n / len(hosts)
		if i < n%len(hosts) {
			due[h]++
		}
	}
	return due
}

// claims lists the free leases self should acquire.
func (v *balanceView) claims(has, due map[hostKey]int) []string {
	if _, here := due[v.self]; !here {
		return nil
	}
	taken := assign(v.leases, has, due)
	var mine, orphans []string
	for _, l := range v.leases {
		switch {
		case l.owner != "":
		case l.handoff == v.self || taken[l.id] == v.self:
			mine = append(mine, l.id)
		case l.waiting:
			orphans = append(orphans, l.id)
		}
	}
	return append(mine, orphans...) // what nobody took within a cycle is anyone's: its taker may be gone
}

func (v *balanceView) held() int {
	n := 0
	for _, l := range v.leases {
		if l.owner == v.self {
			n++
		}
	}
	return n
}

// assign gives the free ones of leases, in order, to hosts below their due: first to
// hosts of the name that had the lease before, then round and round.
func assign(leases []balanceLease, has, due map[hostKey]int) map[string]hostKey {
	missing := map[hostKey]int{}
	var hosts []hostKey
	for _, h := range slices.Sorted(maps.Keys(due)) {
		if n := due[h] - has[h]; n > 0 {
			missing[h] = n
			hosts = append(hosts, h)
		}
	}
	taken := map[string]hostKey{}
	for _, l := range leases {
		i := slices.IndexFunc(hosts, func(h hostKey) bool { return l.free() && h.name() == l.previous && missing[h] > 0 })
		if i >= 0 {
			taken[l.id] = hosts[i]
			missing[hosts[i]]--
		}
	}
	next := 0
	for _, l := range leases {
		if _, given := taken[l.id]; given || !l.free() {
			continue
		}
		for range hosts {
			h := hosts[next%len(hosts)]
			next++
			if missing[h] > 0 {
				taken[l.id] = h
				missing[h]--
				break
			}
		}
	}
	return taken
}

// surplus lists the leases self should pass on, and to whom; idle ones first.
func (v *balanceView) surplus(has, due map[hostKey]int) map[string]hostKey {
	var idle, busy []string
	free := 0
	for _, l := range v.leases {
		switch {
		case l.owner == v.self && l.busy:
			busy = append(busy, l.id)
		case l.owner == v.self:
			idle = append(idle, l.id)
		case l.free():
			free++
		}
	}
	own := slices.Concat(idle, busy)
	over := len(own) - due[v.self]
	if over <= 0 {
		return nil
	}
	var vacancies []hostKey
	before := 0 // surplus of the hosts that name their takers before self does
	for _, h := range slices.Sorted(maps.Keys(due)) {
		for range due[h] - has[h] {
			vacancies = append(vacancies, h)
		}
		if h < v.self {
			before += max(0, has[h]-due[h])
		}
	}
	from := min(len(vacancies), free+before) // free leases fill the first ones
	to := min(len(vacancies), from+over)
	plan := map[string]hostKey{}
	for i, h := range vacancies[from:to] {
		if !slices.Contains(v.quiet, h) {
			plan[own[i]] = h
		}
	}
	return plan
}

// hashOrder orders leases the same way on every host, unrelated to their ids.
func hashOrder(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
