package changefeed

import (
	"cmp"
	"hash/fnv"
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
	// least is how many leases this host wants at least; most is how many each
	// host takes at most, 0 for no bound.
	least int
	most  map[hostKey]int
}

// balanceLease is one live lease.
type balanceLease struct {
	id       string
	owner    hostKey // "" if nobody holds it: released, or its owner's lease expired
	handoff  hostKey // who may take it first, if it is still awaited
	previous string  // name of the last owner
	waiting  bool    // nobody took it for a while: anyone may
	busy     bool    // held by self, with work in hand
	order    uint32  // the same on every host
}

// balancePlan is what self should do now.
type balancePlan struct {
	acquire []string  // lease ids, in the order to try
	handoff []handoff // own leases to pass on
}

type handoff struct {
	lease string
	to    hostKey
}

// balance computes this host's part of the plan.
//
// Every host is due an equal number of leases, give or take one; those that
// have more already get the one more, so that a balanced set never moves. Free
// leases go to hosts below their due, in an order that spreads them; a host
// above its due passes its surplus on to named hosts, so that nothing is ever
// taken from a live owner and each lease moves at most once.
func balance(v balanceView) balancePlan {
	for i := range v.leases {
		v.leases[i].order = spread(v.leases[i].id)
	}
	slices.SortFunc(v.leases, func(a, b balanceLease) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.id, b.id))
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
		if holder := cmp.Or(l.owner, l.handoff); holder != "" {
			if _, alive := has[holder]; alive {
				has[holder]++
			}
		}
	}
	due = shares(len(v.leases), has, v.most)
	if _, here := due[v.self]; here {
		due[v.self] = max(due[v.self], v.least)
	}
	return has, due
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
	return shares(len(v.leases), has, v.most)[newcomer] == 0
}

// shares is how many of n leases each host is due: rounds of equal parts, until
// nothing is left or every host has its most.
func shares(n int, has, most map[hostKey]int) map[hostKey]int {
	hosts := sortedHosts(has)
	slices.SortStableFunc(hosts, func(a, b hostKey) int { return cmp.Compare(has[b], has[a]) })
	due := make(map[hostKey]int, len(hosts))
	for _, h := range hosts {
		due[h] = 0
	}
	for n > 0 && len(hosts) > 0 {
		part := max(1, n/len(hosts))
		hosts = slices.DeleteFunc(hosts, func(h hostKey) bool {
			take := min(part, n)
			if most[h] > 0 {
				take = min(take, most[h]-due[h])
			}
			due[h] += take
			n -= take
			return most[h] > 0 && due[h] >= most[h]
		})
	}
	return due
}

// claims lists the free leases self should acquire.
func (v *balanceView) claims(has, due map[hostKey]int) []string {
	if _, here := due[v.self]; !here {
		return nil
	}
	var mine, free, orphans []string
	names := map[string]string{} // lease id to the name of its last owner
	for _, l := range v.leases {
		switch {
		case l.owner != "":
		case l.handoff == v.self:
			mine = append(mine, l.id)
		case l.handoff != "":
		default:
			free = append(free, l.id)
			names[l.id] = l.previous
			if l.waiting {
				orphans = append(orphans, l.id)
			}
		}
	}
	for id, h := range assign(free, names, has, due) {
		if h == v.self {
			mine = append(mine, id)
		}
	}
	slices.SortFunc(mine, func(a, b string) int { return cmp.Compare(spread(a), spread(b)) })
	room := len(v.leases)
	if most := v.most[v.self]; most > 0 {
		room = max(0, most-v.held())
		mine = mine[:min(len(mine), room)]
	}
	// What nobody took within a cycle is anyone's: its taker may be gone or full.
	for _, id := range orphans {
		if len(mine) < room && !slices.Contains(mine, id) {
			mine = append(mine, id)
		}
	}
	return mine
}

// held counts the leases self owns.
func (v *balanceView) held() int {
	n := 0
	for _, l := range v.leases {
		if l.owner == v.self {
			n++
		}
	}
	return n
}

// assign gives the free leases, in order, to hosts below their due: first to
// hosts of the name that had the lease before, then round and round.
func assign(free []string, previous map[string]string, has, due map[hostKey]int) map[string]hostKey {
	missing := map[hostKey]int{}
	var hosts []hostKey
	for _, h := range sortedHosts(due) {
		if n := due[h] - has[h]; n > 0 {
			missing[h] = n
			hosts = append(hosts, h)
		}
	}
	taken := map[string]hostKey{}
	for _, id := range free {
		for _, h := range hosts {
			if previous[id] != "" && h.name() == previous[id] && missing[h] > 0 {
				taken[id] = h
				missing[h]--
				break
			}
		}
	}
	next := 0
	for _, id := range free {
		if _, given := taken[id]; given {
			continue
		}
		for range hosts {
			h := hosts[next%len(hosts)]
			next++
			if missing[h] > 0 {
				taken[id] = h
				missing[h]--
				break
			}
		}
	}
	return taken
}

// surplus lists the leases self should pass on, and to whom; idle ones first.
func (v *balanceView) surplus(has, due map[hostKey]int) []handoff {
	var own []balanceLease
	free := 0
	for _, l := range v.leases {
		switch {
		case l.owner == v.self:
			own = append(own, l)
		case l.owner == "" && l.handoff == "":
			free++
		}
	}
	over := len(own) - due[v.self]
	if over <= 0 {
		return nil
	}
	slices.SortStableFunc(own, func(a, b balanceLease) int { return compareBool(a.busy, b.busy) })
	var vacancies []hostKey
	before := 0 // surplus of the hosts that name their takers before self does
	for _, h := range sortedHosts(due) {
		for range due[h] - has[h] {
			vacancies = append(vacancies, h)
		}
		if h < v.self {
			before += max(0, has[h]-due[h])
		}
	}
	from := min(len(vacancies), free+before) // free leases fill the first ones
	to := min(len(vacancies), from+over)
	plan := make([]handoff, 0, over)
	for i, h := range vacancies[from:to] {
		if !slices.Contains(v.quiet, h) {
			plan = append(plan, handoff{lease: own[i].id, to: h})
		}
	}
	return plan
}

func sortedHosts(m map[hostKey]int) []hostKey {
	hosts := make([]hostKey, 0, len(m))
	for h := range m {
		hosts = append(hosts, h)
	}
	slices.Sort(hosts)
	return hosts
}

// spread orders leases the same way on every host, unrelated to their ids.
func spread(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
