package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"feedbox/tests/sim/world"
)

// Plan is the part of a run that its seed determines.
type Plan struct {
	Seed     uint64
	Length   time.Duration // time with load and faults
	Topology world.Topology
	Load     world.LoadOptions
	Faults   []Fault // in order of At
}

// Fault is one scheduled fault. Faults are independent of each other, so that shrinking can remove
// any of them.
type Fault struct {
	At, For time.Duration // begin since the start of the run, and length
	Kind    string        // a key of kinds
	Target  string        // a part, or a key whose range splits
	P       float64       // probability per call
	Size    time.Duration // of a delay, a jump of a clock
}

func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s for %s %s", f.At.Round(time.Millisecond), f.For.Round(time.Millisecond), f.Kind)
	if f.Target != "" {
		fmt.Fprintf(&b, " %s", f.Target)
	}
	if f.P > 0 {
		fmt.Fprintf(&b, " p=%.2f", f.P)
	}
	if f.Size != 0 {
		fmt.Fprintf(&b, " size=%s", f.Size.Round(time.Millisecond))
	}
	return b.String()
}

// NewPlan draws a plan.
func NewPlan(seed uint64, length time.Duration) *Plan {
	rnd := rand.New(rand.NewPCG(seed, 1000))
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(rnd.Int64N(int64(high-low))) }
	p := &Plan{Seed: seed, Length: length, Topology: world.Topology{
		APIs: 1 + rnd.IntN(2), Relays: 2 + rnd.IntN(2), Consumers: 1 + rnd.IntN(2), Sessions: 2 + rnd.IntN(2), Partitions: 1 + rnd.IntN(3),
		OnDisk: rnd.IntN(2) == 0, LeaseExpiry: between(6*time.Second, 20*time.Second).Round(time.Second),
		PollMin:  between(400*time.Millisecond, 1500*time.Millisecond).Round(time.Millisecond),
		MaxItems: 5 + rnd.IntN(40), PackKeys: rnd.IntN(2) == 0,
	}}
	t := &p.Topology
	if seed%3 != 0 { // not drawn, so that the plans of existing seeds do not change
		t.Shops, t.OrdersApart, t.OneRelay = 1, seed%3 == 2, seed%6 == 5
	}
	t.Parking = seed%2 == 0 // in half of the seeds, because it doubles the processor time of a seed
	if rnd.IntN(3) == 0 {
		t.StaleReads = between(time.Second, 4*time.Second)
	}
	if rnd.IntN(8) == 0 {
		t.EventTTL = 90 * time.Second
	}
	p.Load = world.LoadOptions{Writers: 2 + rnd.IntN(2), Contacts: 3 + rnd.IntN(5), Pace: between(1500*time.Millisecond, 3*time.Second)}
	pace := between(5*time.Second, 15*time.Second)
	for at := between(2*time.Second, 10*time.Second); at < length-5*time.Second; at += time.Duration(rnd.ExpFloat64() * float64(pace)) {
		p.Faults = append(p.Faults, p.draw(rnd, at))
	}
	if t.EventTTL > 0 && length > 4*time.Minute { // no relay for so long that events expire
		p.Faults = append(p.Faults, Fault{At: between(time.Minute, length-3*time.Minute), For: t.EventTTL + between(5*time.Second, 30*time.Second), Kind: "relays-down"})
	}
	if t.EventTTL > 0 { // a clock jump would expire events before the ledger sees them
		p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool { return f.Kind == "clock" })
	}
	p.Faults = append(p.Faults, p.shopFaults(length)...)
	p.Faults = append(p.Faults, p.quietFaults(length)...)
	p.Faults = append(p.Faults, p.consumerFaults(length)...)
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p
}

// shopFaults draws crashes of shops and of their relays. It has its own random source, so that the
// other faults of existing seeds do not change.
func (p *Plan) shopFaults(length time.Duration) (faults []Fault) {
	if p.Topology.Shops == 0 {
		return nil
	}
	rnd := rand.New(rand.NewPCG(p.Seed, 2000))
	kinds := []string{"crash-shop"}
	if p.Topology.OrdersApart && !p.Topology.OneRelay {
		kinds = append(kinds, "crash-shoprelay")
	}
	for at := 10 * time.Second; at < length-5*time.Second; at += time.Duration(rnd.ExpFloat64() * float64(30*time.Second)) {
		name := kinds[rnd.IntN(len(kinds))]
		f := Fault{At: at, Kind: name, Target: "shop-0", For: time.Duration(rnd.Float64() * float64(20*time.Second))}
		if name == "crash-shoprelay" {
			f.Target = fmt.Sprintf("shoprelay-%d", rnd.IntN(2))
		}
		faults = append(faults, f)
	}
	return faults
}

// draw draws one fault.
func (p *Plan) draw(rnd *rand.Rand, at time.Duration) Fault {
	total := 0
	for _, k := range kindsInOrder {
		total += kinds[k].weight
	}
	n := rnd.IntN(total)
	var name string
	for _, name = range kindsInOrder {
		if n -= kinds[name].weight; n < 0 {
			break
		}
	}
	k := kinds[name]
	f := Fault{At: at, Kind: name}
	f.For = time.Duration((0.1 + 0.9*rnd.Float64()) * float64(k.longest))
	if k.expiries > 0 {
		f.For = time.Duration(rnd.Float64() * k.expiries * float64(p.Topology.LeaseExpiry))
	}
	f.P = (0.05 + 0.95*rnd.Float64()) * k.chance
	f.Size = time.Duration((0.05 + 0.95*rnd.Float64()) * float64(k.size))
	switch k.target {
	case "":
	case "key":
		f.Target = fmt.Sprintf("key-%d", rnd.IntN(1000))
	case "process":
		kind := []string{"api", "relay", "relay", "consumer"}[rnd.IntN(4)]
		f.Target = fmt.Sprintf("%s-%d", kind, rnd.IntN(p.count(kind)))
	default:
		if f.Target = k.target; p.count(k.target) > 0 {
			f.Target = fmt.Sprintf("%s-%d", k.target, rnd.IntN(p.count(k.target)))
		}
	}
	if name == "clock" && rnd.IntN(2) == 0 {
		f.Size = -f.Size
	}
	return f
}

func (p *Plan) count(kind string) int {
	return map[string]int{"api": p.Topology.APIs, "relay": p.Topology.Relays, "consumer": p.Topology.Consumers}[kind]
}

// String returns the plan, one line per fault.
func (p *Plan) String() string {
	var b strings.Builder
	t := p.Topology
	fmt.Fprintf(&b, "seed %d, %s: %d APIs, %d relays, %d consumers of %d sessions, %d partitions, on disk %t, lease expiry %s, poll %s, %d items a page, pack %t, stale reads %s, event TTL %s; %d writers, pace %s, %d shops, orders apart %t, one relay %t, parking %t",
		p.Seed, p.Length, t.APIs, t.Relays, t.Consumers, t.Sessions, t.Partitions, t.OnDisk, t.LeaseExpiry, t.PollMin, t.MaxItems, t.PackKeys,
		t.StaleReads.Round(time.Millisecond), t.EventTTL, p.Load.Writers, p.Load.Pace.Round(time.Millisecond), t.Shops, t.OrdersApart, t.OneRelay, t.Parking)
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "\n\t%s", f)
	}
	return b.String()
}
