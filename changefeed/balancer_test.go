package changefeed

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// fleet applies plans like hosts: all decide from the same view, then all act.
type fleet struct {
	owner   map[string]hostKey
	handoff map[string]hostKey
	moves   map[string]int
	hosts   []hostKey
}

func newFleet(leases int, hosts ...hostKey) *fleet {
	f := &fleet{
		owner: map[string]hostKey{}, handoff: map[string]hostKey{}, moves: map[string]int{}, hosts: hosts,
	}
	for i := range leases {
		f.owner[fmt.Sprintf("p..%d", i)] = ""
	}
	return f
}

func (f *fleet) view(self hostKey, waiting bool) balanceView {
	v := balanceView{self: self, hosts: append([]hostKey(nil), f.hosts...)}
	for id, owner := range f.owner {
		v.leases = append(v.leases, balanceLease{id: id, owner: owner, handoff: f.handoff[id], waiting: waiting && owner == "" && f.handoff[id] == ""})
	}
	return v
}

// step is one cycle of every host.
func (f *fleet) step(waiting bool) (changed bool) {
	plans := map[hostKey]balancePlan{}
	for _, h := range f.hosts {
		plans[h] = balance(f.view(h, waiting))
	}
	for _, h := range f.hosts {
		for _, id := range plans[h].acquire {
			if f.owner[id] == "" { // the ETag decides a race
				f.owner[id] = h
				delete(f.handoff, id)
				changed = true
			}
		}
		for lease, to := range plans[h].handoff {
			f.owner[lease] = ""
			f.handoff[lease] = to
			f.moves[lease]++
			changed = true
		}
	}
	return changed
}

func (f *fleet) counts() map[hostKey]int {
	counts := map[hostKey]int{}
	for _, h := range f.hosts {
		counts[h] = 0
	}
	for _, h := range f.owner {
		counts[h]++
	}
	return counts
}

func (f *fleet) requireBalanced(t *testing.T) {
	t.Helper()
	low, high := 1<<30, 0
	for h, n := range f.counts() {
		if h == "" {
			t.Errorf("%d leases have no owner", n)
			continue
		}
		low, high = min(low, n), max(high, n)
	}
	if high-low > 1 {
		t.Errorf("unbalanced: %v", f.counts())
	}
}

func TestBalanceSettlesAndMovesEachLeaseOnce(t *testing.T) {
	for _, tt := range []struct{ leases, before, after int }{
		{1, 1, 1}, {1, 1, 3}, {7, 1, 2}, {100, 1, 2}, {100, 3, 4}, {1000, 4, 8}, {5, 2, 9}, {1000, 1, 100},
	} {
		t.Run(fmt.Sprintf("%d leases %d to %d hosts", tt.leases, tt.before, tt.after), func(t *testing.T) {
			var hosts []hostKey
			for i := range tt.after {
				hosts = append(hosts, newHostKey(fmt.Sprintf("h%d", i), "x"))
			}
			f := newFleet(tt.leases, hosts[:tt.before]...)
			for range 3 {
				f.step(false)
			}
			f.requireBalanced(t)
			f.hosts, f.moves = hosts, map[string]int{}
			steps := 0
			for f.step(false) {
				if steps++; steps > 3 {
					t.Fatal("does not settle")
				}
			}
			f.requireBalanced(t)
			moved := 0
			for id, n := range f.moves {
				moved++
				if n > 1 {
					t.Errorf("lease %s moved %d times", id, n)
				}
			}
			fewest := 0 // leases the new hosts are due
			for i, n := range f.counts() {
				if i >= hosts[0] && !contains(hosts[:tt.before], i) {
					fewest += n
				}
			}
			if moved != fewest {
				t.Errorf("%d leases moved, want the %d the new hosts are due", moved, fewest)
			}
		})
	}
}

// Whatever the sizes of the sets, each is shared evenly, and so is their sum.
func TestSiblingsShareTheSumEvenly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var siblings Siblings
		var hosts []hostKey
		for i := range 1 + random.IntN(9) {
			hosts = append(hosts, newHostKey(fmt.Sprint("h", i), "x"))
		}
		total := map[hostKey]int{}
		var sets []int
		for range 1 + random.IntN(6) {
			place := siblings.join()
			f := newFleet(random.IntN(12), hosts[:1+random.IntN(len(hosts))]...) // some joined later
			f.step(true)
			f.hosts = hosts
			v := f.view(hosts[0], false)
			v.before = siblings.before(place)
			_, due := v.dues()
			siblings.note(place, due)
			for h, n := range due {
				if total[h] += n; n < len(v.leases)/len(hosts) || n > len(v.leases)/len(hosts)+1 {
					t.Errorf("a host is due %d of %d leases, with %d hosts", n, len(v.leases), len(hosts))
				}
			}
			sets = append(sets, len(v.leases))
		}
		counts := slices.Sorted(maps.Values(total))
		if counts[len(counts)-1]-counts[0] > 1 {
			t.Errorf("sets of %v leases: the hosts are due %v", sets, counts)
		}
	}
}

func contains(hosts []hostKey, h hostKey) bool {
	for _, o := range hosts {
		if o == h {
			return true
		}
	}
	return false
}

// A lease handed to a host counts as that host's before it is acquired.
func TestBalanceCountsPendingHandoffs(t *testing.T) {
	v := balanceView{self: "a/1", hosts: []hostKey{"a/1", "b/1"}, leases: []balanceLease{
		{id: "p..1", handoff: "a/1"}, {id: "p..2", handoff: "a/1"}, {id: "p..3", owner: "b/1"}, {id: "p..4"},
	}}
	plan := balance(v)
	slices.Sort(plan.acquire)
	if !slices.Equal(plan.acquire, []string{"p..1", "p..2"}) {
		t.Errorf("a acquires %v, want the two it was given: the fourth is b's share", plan.acquire)
	}
}

func TestBalanceHandsOffIdleLeasesFirst(t *testing.T) {
	for n := range 6 { // in any order of their ids
		v := balanceView{self: "a/1", hosts: []hostKey{"a/1", "b/1"}}
		for i := range 4 {
			v.leases = append(v.leases, balanceLease{id: fmt.Sprintf("p%d..%d", n, i), owner: "a/1", busy: i%2 == 0})
		}
		passed := slices.Sorted(maps.Keys(balance(v).handoff))
		if want := []string{fmt.Sprintf("p%d..1", n), fmt.Sprintf("p%d..3", n)}; !slices.Equal(passed, want) {
			t.Errorf("a passes %v on, want the idle ones %v", passed, want)
		}
	}
}

func TestBalanceMovesNothingInABalancedFleet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		hosts := make([]hostKey, 1+rng.IntN(9))
		for i := range hosts {
			hosts[i] = newHostKey(fmt.Sprintf("h%d", rng.IntN(1000)+i*1000), "x")
		}
		f := newFleet(rng.IntN(60), hosts...)
		for id := range f.owner { // any owners, or none
			if n := rng.IntN(len(hosts) + 2); n < len(hosts) {
				f.owner[id] = hosts[n]
			}
		}
		for range 4 {
			f.step(false)
		}
		f.requireBalanced(t)
		if f.step(false) {
			t.Fatal("a balanced fleet moved")
		}
	}
}

func TestBalanceReturnsLeasesAfterARestart(t *testing.T) {
	v := balanceView{self: "a/new", hosts: []hostKey{"a/new", "b/x"}}
	for i := range 10 {
		l := balanceLease{id: fmt.Sprintf("p..%d", i), previous: "a"}
		if i%2 == 1 {
			l = balanceLease{id: l.id, owner: "b/x"}
		}
		v.leases = append(v.leases, l)
	}
	if plan := balance(v); len(plan.acquire) != 5 || len(plan.handoff) != 0 {
		t.Errorf("the restarted host takes %v", plan)
	}
	for i := range v.leases { // after all have been away, it is still due no more than the other
		v.leases[i].owner, v.leases[i].previous = "", "a"
	}
	for _, v.self = range v.hosts {
		if plan := balance(v); len(plan.acquire) != 5 {
			t.Errorf("%s takes %v, want half of what is free", v.self, plan)
		}
	}
}

func TestBalanceReservesHandedOffLease(t *testing.T) {
	v := balanceView{self: "a/x", hosts: []hostKey{"a/x", "b/x"}, leases: []balanceLease{{id: "p..0", handoff: "b/x"}, {id: "p..1", owner: "a/x"}}}
	if plan := balance(v); len(plan.acquire)+len(plan.handoff) != 0 {
		t.Errorf("a takes the lease handed to b: %v", plan)
	}
	v.self = "b/x"
	if plan := balance(v); len(plan.acquire) != 1 {
		t.Errorf("b does not take the lease handed to it: %v", plan)
	}
}

// A quiet host may be gone and would not acquire the lease.
func TestBalanceGivesNothingToQuietHost(t *testing.T) {
	leases := []balanceLease{{id: "p..0", owner: "a/x"}, {id: "p..1", owner: "a/x"}, {id: "p..2", owner: "a/x"}, {id: "p..3", owner: "b/x"}}
	for _, tt := range []struct {
		quiet []hostKey
		want  int
	}{{nil, 1}, {[]hostKey{"b/x"}, 0}, {[]hostKey{"c/x"}, 1}} {
		v := balanceView{self: "a/x", hosts: []hostKey{"a/x", "b/x"}, leases: slices.Clone(leases), quiet: tt.quiet}
		if plan := balance(v); len(plan.handoff) != tt.want {
			t.Errorf("quiet %v: %d leases are handed off, want %d", tt.quiet, len(plan.handoff), tt.want)
		}
	}
}

func TestDrainingHostHandsOffEverything(t *testing.T) {
	v := balanceView{self: "a/x", hosts: []hostKey{"b/x", "c/x"}}
	for i := range 6 {
		v.leases = append(v.leases, balanceLease{id: fmt.Sprintf("p..%d", i), owner: "a/x"})
	}
	plan := balance(v)
	to := map[hostKey]int{}
	for _, h := range plan.handoff {
		to[h]++
	}
	if len(plan.acquire) != 0 || to["b/x"] != 3 || to["c/x"] != 3 {
		t.Errorf("plan %v", plan)
	}
}

func BenchmarkBalance1000Leases8Hosts(b *testing.B) {
	f := newFleet(1000, "a/x", "b/x", "c/x", "d/x", "e/x", "f/x", "g/x", "h/x")
	for range 3 {
		f.step(false)
	}
	for b.Loop() {
		balance(f.view("a/x", false))
	}
}

// At a cold start all leases are free and all hosts are below their due.
func BenchmarkBalance10000FreeLeases1000Hosts(b *testing.B) {
	hosts := make([]hostKey, 1000)
	for i := range hosts {
		hosts[i] = newHostKey(fmt.Sprintf("h%d", i), "x")
	}
	f := newFleet(10000, hosts...)
	for b.Loop() {
		balance(f.view(hosts[0], false))
	}
}

// assignOneByOne asks every host for every lease. It defines the result of assign, which is faster.
func assignOneByOne(leases []balanceLease, has, due map[hostKey]int) map[string]hostKey {
	hosts, next, taken := slices.Sorted(maps.Keys(due)), 0, map[string]hostKey{}
	has = maps.Clone(has)
	take := func(l balanceLease, h hostKey) {
		taken[l.id] = h
		has[h]++
	}
	for _, l := range leases {
		i := slices.IndexFunc(hosts, func(h hostKey) bool { return l.free() && h.name() == l.previous && has[h] < due[h] })
		if i >= 0 {
			take(l, hosts[i])
		}
	}
	for _, l := range leases {
		for range hosts {
			if _, given := taken[l.id]; given || !l.free() {
				break
			}
			if h := hosts[next%len(hosts)]; has[h] < due[h] {
				take(l, h)
			}
			next++
		}
	}
	return taken
}

func TestAssignGivesByPreviousNameThenRoundRobin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 500 {
		has, due := map[hostKey]int{}, map[hostKey]int{}
		for i := range 1 + rng.IntN(12) { // some names twice
			h := newHostKey(fmt.Sprint(i/2+i%2*rng.IntN(9)), fmt.Sprint(i))
			has[h], due[h] = rng.IntN(4), rng.IntN(7)
		}
		leases := make([]balanceLease, rng.IntN(40))
		for i := range leases {
			leases[i] = balanceLease{id: fmt.Sprint(i), previous: fmt.Sprint(rng.IntN(12))}
			switch rng.IntN(5) {
			case 0:
				leases[i].owner = "o/1"
			case 1:
				leases[i].handoff = "o/1"
			}
		}
		if got, want := assign(leases, has, due), assignOneByOne(leases, has, due); !maps.Equal(got, want) {
			t.Fatalf("leases %+v, has %v, due %v: assigned %v, want %v", leases, has, due, got, want)
		}
	}
}

func TestSpareAndAlone(t *testing.T) {
	owned := func(by ...hostKey) (leases []balanceLease) {
		for i, h := range by {
			leases = append(leases, balanceLease{id: fmt.Sprint(i), owner: h})
		}
		return leases
	}
	for name, tt := range map[string]struct {
		view         balanceView
		spare, alone bool
	}{
		"the one host of one lease":       {view: balanceView{hosts: []hostKey{"a"}, leases: owned("a")}, alone: true},
		"beside a spare host":             {view: balanceView{hosts: []hostKey{"a", "b"}, leases: owned("a")}, alone: true},
		"the spare host":                  {view: balanceView{hosts: []hostKey{"a", "b"}, leases: owned("b")}, spare: true},
		"one that could share":            {view: balanceView{hosts: []hostKey{"a"}, leases: owned("a", "a")}},
		"one that watches another":        {view: balanceView{hosts: []hostKey{"a", "b"}, leases: owned("a", "b")}},
		"a lease is free":                 {view: balanceView{hosts: []hostKey{"a"}, leases: owned("a", "")}},
		"it is to be given one":           {view: balanceView{hosts: []hostKey{"a", "b"}, leases: owned("b", "b")}},
		"a lease waits for it":            {view: balanceView{hosts: []hostKey{"a", "b"}, leases: append(owned("b"), balanceLease{id: "x", handoff: "a"})}},
		"its one lease waits for it":      {view: balanceView{hosts: []hostKey{"a"}, leases: []balanceLease{{id: "x", handoff: "a"}}}},
		"there are no leases yet":         {view: balanceView{hosts: []hostKey{"a"}}, spare: true},
		"more hosts than leases, it owns": {view: balanceView{hosts: []hostKey{"a", "b", "c"}, leases: owned("a", "c")}},
	} {
		tt.view.self = "a"
		if spare, alone := tt.view.spare(), tt.view.alone(); spare != tt.spare || alone != tt.alone {
			t.Errorf("%s: spare %t, alone %t; want %t, %t", name, spare, alone, tt.spare, tt.alone)
		}
	}
}

func TestBalancePrefersThePreviousOwner(t *testing.T) {
	v := balanceView{hosts: []hostKey{"a/2", "b/2"}}
	want := map[hostKey][]string{}
	for i := range 10 {
		name := []string{"a", "b"}[i%2]
		l := balanceLease{id: fmt.Sprintf("p..%d", i), previous: name}
		v.leases, want[hostKey(name+"/2")] = append(v.leases, l), append(want[hostKey(name+"/2")], l.id)
	}
	for _, h := range v.hosts {
		v.self = h
		got := slices.Sorted(slices.Values(balance(v).acquire))
		if !slices.Equal(got, want[h]) {
			t.Errorf("%s acquires %v, want %v", h, got, want[h])
		}
	}
}

// The order of the listing does not matter: every free lease is acquired by exactly one
// host.
func TestAllHostsComputeOnePlan(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	hosts := []hostKey{"a/1", "b/1", "c/1"}
	var leases []balanceLease
	for i := range 20 {
		l := balanceLease{id: fmt.Sprintf("p..%d", i)}
		if i < 8 {
			l.owner = "a/1"
		}
		leases = append(leases, l)
	}
	shuffled := func(self hostKey) balancePlan {
		v := balanceView{self: self, hosts: slices.Clone(hosts), leases: slices.Clone(leases)}
		rng.Shuffle(len(v.leases), func(i, j int) { v.leases[i], v.leases[j] = v.leases[j], v.leases[i] })
		return balance(v)
	}
	taken := map[string]int{}
	for _, self := range hosts {
		plan := shuffled(self)
		for range 20 {
			if again := shuffled(self); !reflect.DeepEqual(again, plan) {
				t.Fatalf("%s plans %v, and in another order %v", self, plan, again)
			}
		}
		for _, id := range plan.acquire {
			taken[id]++
		}
	}
	if len(taken) != 12 || slices.Max(slices.Collect(maps.Values(taken))) != 1 {
		t.Errorf("taken are %v, want each of the 12 free ones once", taken)
	}
}

func TestClaimsBesideTheShare(t *testing.T) {
	for name, tt := range map[string]struct {
		hosts  []hostKey
		leases []balanceLease
		want   []string
	}{
		"unclaimed":                                 {[]hostKey{"a/1", "b/1"}, []balanceLease{{id: "1", owner: "a/1"}, {id: "2", owner: "a/1"}, {id: "3", waiting: true}}, []string{"3"}},
		"another's share":                           {[]hostKey{"a/1", "b/1"}, []balanceLease{{id: "1", owner: "a/1"}, {id: "2", owner: "a/1"}, {id: "3"}}, nil},
		"an owned one, meant for it":                {[]hostKey{"a/1", "b/1"}, []balanceLease{{id: "1", owner: "b/1", handoff: "a/1"}, {id: "2", owner: "a/1"}}, nil},
		"nothing when it leaves":                    {[]hostKey{"b/1"}, []balanceLease{{id: "1", waiting: true}, {id: "2", handoff: "a/1"}}, nil},
		"its share, though another has what it had": {[]hostKey{"a/1", "b/1"}, []balanceLease{{id: "1", owner: "b/1", previous: "a"}, {id: "2"}}, []string{"2"}},
	} {
		v := balanceView{self: "a/1", hosts: tt.hosts, leases: tt.leases}
		if got := balance(v).acquire; !slices.Equal(got, tt.want) {
			t.Errorf("%s: it claims %v, want %v", name, got, tt.want)
		}
	}
}

// Free leases fill the first vacancies. A host with too many leases fills the next ones, so
// no host gets more than its share.
func TestBalanceCountsFreeLeasesFirst(t *testing.T) {
	v := balanceView{self: "a", hosts: []hostKey{"a", "b", "c"}}
	for i := range 6 {
		l := balanceLease{id: fmt.Sprint(i), owner: "a"}
		if i == 5 {
			l.owner = ""
		}
		v.leases = append(v.leases, l)
	}
	to := slices.Sorted(maps.Values(balance(v).handoff))
	if !slices.Equal(to, []hostKey{"b", "c", "c"}) {
		t.Errorf("handed to %v; want two for c, and one for b, which is due the free one", to)
	}
}
