package changefeed

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// The balancer is a pure function: with the same view every host computes the same plan and
// takes its own part of it. Where two hosts' views differ, the ETags decide.

// balanceView is one host's view of all hosts and leases.
type balanceView struct {
	self    hostKey
	hosts   []hostKey // alive and not leaving, self included unless it drains
	leaving []hostKey // about to release their leases
	// quiet hosts count as alive but have shown no sign of life for half an expiry. They
	// get no leases, because a host of which some leases have expired may well be gone.
	quiet  []hostKey
	leases []balanceLease
	// before is how many leases of other sets each host is due, by its name; see Siblings.
	before map[string]int
}

type balanceLease struct {
	id       string
	order    uint32  // hashOrder of id, set by balance
	owner    hostKey // "" if the lease is unowned: released, or expired
	handoff  hostKey // the host that may take it first, if that host is still awaited
	previous string  // name of the last owner
	waiting  bool    // unowned for so long that any host may take it
	busy     bool    // held by self, with work in flight
	fresh    bool    // held by self for less than fastFor
}

func (l *balanceLease) free() bool { return l.owner == "" && l.handoff == "" }

// balancePlan is the part of the plan that self carries out now.
type balancePlan struct {
	acquire []string           // lease ids, in the order to try
	handoff map[string]hostKey // own leases to hand off, and the target of each
}

// balance computes this host's part of the plan.
//
// Every host is due an equal number of leases, give or take one. The remainder goes to the
// hosts that have the most already, because otherwise a balanced set of leases would move, and
// with Siblings first to those that are due the fewest of other sets.
func balance(v balanceView) balancePlan {
	for i := range v.leases {
		v.leases[i].order = hashOrder(v.leases[i].id)
	}
	slices.SortFunc(v.leases, func(a, b balanceLease) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id))
	})
	has, due := v.dues()
	return balancePlan{acquire: v.claims(has, due), handoff: v.surplus(has, due)}
}

// dues counts the leases each host has, and those it is due.
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
	return has, v.shares(has)
}

// spare reports whether self is due nothing, because there are enough other hosts.
func (v *balanceView) spare() bool {
	_, due := v.dues()
	return due[v.self] == 0
}

// alone reports whether self holds every lease and would keep them all if another host
// came. Then no other host can affect it.
func (v *balanceView) alone() bool {
	if len(v.leases) == 0 || v.held() < len(v.leases) {
		return false
	}
	has, _ := v.dues()
	const newcomer hostKey = ""
	has[newcomer] = 0
	return v.shares(has)[newcomer] == 0
}

// shares returns how many leases each host is due: equal parts, and the remainder to
// the hosts that are due the fewest of other sets and have the most of this one.
func (v *balanceView) shares(has map[hostKey]int) map[hostKey]int {
	n, hosts := len(v.leases), slices.Sorted(maps.Keys(has))
	slices.SortStableFunc(hosts, func(a, b hostKey) int {
		return cmp.Or(cmp.Compare(v.before[a.name()], v.before[b.name()]), cmp.Compare(has[b], has[a]))
	})
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
	return append(mine, orphans...) // an expected owner did not acquire these within a cycle, so it may be gone
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

// assign gives the free leases, in order, to hosts below their due: first to hosts of the
// name that had the lease before, then round robin.
func assign(leases []balanceLease, has, due map[hostKey]int) map[string]hostKey {
	missing := map[hostKey]int{}
	named := map[string][]hostKey{} // hosts below their due, by name
	var hosts []hostKey
	for _, h := range slices.Sorted(maps.Keys(due)) {
		if n := due[h] - has[h]; n > 0 {
			missing[h] = n
			named[h.name()] = append(named[h.name()], h)
			hosts = append(hosts, h)
		}
	}
	taken := map[string]hostKey{}
	for _, l := range leases {
		if !l.free() {
			continue
		}
		if same := named[l.previous]; len(same) > 0 {
			taken[l.id] = same[0]
			if missing[same[0]]--; missing[same[0]] == 0 {
				named[l.previous] = same[1:]
			}
		}
	}
	// A host leaves the round once it has its due. Otherwise each lease would ask every host, and a
	// thousand hosts with ten thousand leases would take a second of each cycle.
	hosts = slices.DeleteFunc(hosts, func(h hostKey) bool { return missing[h] == 0 })
	next := 0
	for _, l := range leases {
		if _, given := taken[l.id]; given || !l.free() || len(hosts) == 0 {
			continue
		}
		if next >= len(hosts) {
			next = 0
		}
		h := hosts[next]
		taken[l.id] = h
		if missing[h]--; missing[h] > 0 {
			next++
		} else {
			hosts = slices.Delete(hosts, next, next+1)
		}
	}
	return taken
}

// surplus lists the leases self should hand off and their targets. Idle ones come first,
// because a busy one must finish its pages. A lease that is surplus only because of other sets is not
// returned to the host that has just given it: hosts with other lists of sets may not agree which of
// them is due it.
func (v *balanceView) surplus(has, due map[hostKey]int) map[string]hostKey {
	var idle, busy []string
	free, given := 0, map[string]string{} // fresh leases, and who had them
	for _, l := range v.leases {
		if l.fresh {
			given[l.id] = l.previous
		}
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
	before := 0 // surplus of the hosts that choose their targets before self does
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
	unrelated := balanceView{leases: v.leases}
	forOthers := len(own) <= unrelated.shares(has)[v.self]
	for i, h := range vacancies[from:to] {
		if !slices.Contains(v.quiet, h) && (!forOthers || given[own[i]] != h.name()) {
			plan[own[i]] = h
		}
	}
	return plan
}

// hashOrder orders leases the same way on every host, independent of their ids.
func hashOrder(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}
