package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/tests/sim/world"
)

// quietKinds are operators' acts, and failures without an error. Their own random source draws
// them, so that the other faults of existing seeds do not change: see Plan.quietFaults.
var quietKinds = map[string]kind{
	"operator-pauses":        {longest: 30 * time.Second, begin: pause((*world.World).Pause)},
	"operator-pauses-leases": {longest: 30 * time.Second, begin: pause((*world.World).PauseLeases)},
	"operator-releases": {begin: act(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return leases.Release(ctx)
	})},
	"operator-retries": {begin: act(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return leases.Retry(ctx)
	})},
	"operator-rewinds": {begin: act(func(ctx context.Context, leases *changefeed.Operator, _ *relayport.Store) error {
		return leases.Rewind(ctx, changefeed.FromBeginning())
	})},
	"operator-retries-parked": {begin: func(s *storm, _ Fault) (func(), bool) {
		s.background("retry parked events", s.w.RetryParked)
		return nil, true
	}},
	"silent-link": {longest: 3 * time.Minute, begin: silentLink},
	"silent-read": {longest: 2 * time.Minute, begin: silentRead},
}

// consumerKinds concern the consumers. Their own random source draws them, like quietKinds.
var consumerKinds = map[string]kind{
	"crash-consumer":  {target: "consumer", longest: 20 * time.Second, begin: crash},
	"freeze-consumer": {target: "consumer", longest: 70 * time.Second, begin: freeze}, // longer than the lock of a session
	"freeze-parking": {target: "consumer", longest: 90 * time.Second, begin: func(s *storm, f Fault) (func(), bool) {
		return func() { s.w.Thaw(f.Target) }, s.w.FreezeParking(f.Target)
	}},
	"dependency-down": {longest: 40 * time.Second, begin: func(s *storm, _ Fault) (func(), bool) {
		s.w.SetDependency(false)
		return func() { s.w.SetDependency(true) }, true
	}},
	"consumer-retries": {begin: func(s *storm, f Fault) (func(), bool) {
		s.background(f.Kind, s.w.RetryConsumer)
		return nil, true
	}},
	"consumer-skips": {chance: 0.6, begin: func(s *storm, f Fault) (func(), bool) {
		d := s.dice(f)
		s.background(f.Kind, func() error { return s.w.SkipFirst(d.roll) })
		return nil, true
	}},
}

// consumerFaults draws from consumerKinds. A retry is as frequent as all others, because otherwise most
// keys would be parked most of the time.
func (p *Plan) consumerFaults(length time.Duration) (faults []Fault) {
	if !p.Topology.Parking {
		return nil
	}
	rnd := rand.New(rand.NewPCG(p.Seed, 4000))
	names := slices.Sorted(maps.Keys(consumerKinds))
	for at := 15 * time.Second; at < length-5*time.Second; at += time.Duration((0.3 + rnd.ExpFloat64()) * float64(12*time.Second)) {
		name := "consumer-retries"
		if rnd.IntN(2) == 0 {
			name = names[rnd.IntN(len(names))]
		}
		k := consumerKinds[name]
		f := Fault{At: at, Kind: name, For: time.Duration((0.1 + 0.9*rnd.Float64()) * float64(k.longest)), P: k.chance}
		if k.target != "" {
			f.Target = fmt.Sprintf("%s-%d", k.target, rnd.IntN(p.count(k.target)))
		}
		faults = append(faults, f)
	}
	return faults
}

// quietFaults draws from quietKinds.
func (p *Plan) quietFaults(length time.Duration) (faults []Fault) {
	rnd := rand.New(rand.NewPCG(p.Seed, 3000))
	names := slices.Sorted(maps.Keys(quietKinds))
	for at := 15 * time.Second; at < length-5*time.Second; at += time.Duration((0.3 + rnd.ExpFloat64()) * float64(30*time.Second)) {
		name := names[rnd.IntN(len(names))]
		faults = append(faults, Fault{At: at, Kind: name, For: time.Duration((0.1 + 0.9*rnd.Float64()) * float64(quietKinds[name].longest))})
	}
	return faults
}

// background runs an operator's act beside the storm, because faults may delay it. Its error is
// traced only, because the store may fail at that time.
func (s *storm) background(name string, do func() error) {
	s.begun.Go(func() {
		if err := do(); err != nil {
			s.w.Trace().Add("operator", "%s: %v", name, err)
		}
	})
}

func act(do func(context.Context, *changefeed.Operator, *relayport.Store) error) func(*storm, Fault) (func(), bool) {
	return func(s *storm, f Fault) (func(), bool) {
		s.background(f.Kind, func() error { return s.w.Operate(do) })
		return nil, true
	}
}

func pause(begin func(*world.World) error) func(*storm, Fault) (func(), bool) {
	return func(s *storm, f Fault) (func(), bool) {
		paused := make(chan struct{})
		s.background(f.Kind, func() error {
			defer close(paused)
			return begin(s.w)
		})
		return func() {
			s.background("resume", func() error {
				<-paused // a pause that the store delays would otherwise pause leases after they were resumed
				return s.w.Resume()
			})
		}, true
	}
}

// silentLink makes the broker ignore one link: neither does it store its messages nor does it
// answer. Other links of the same connection work.
func silentLink(s *storm, f Fault) (func(), bool) {
	var mu sync.Mutex
	link := ""
	return s.w.FaultBus(func(c *busemu.Call) *busemu.Fault {
		mu.Lock()
		defer mu.Unlock()
		if c.Operation != busemu.OpSend || c.Link == "" || link != "" && c.Link != link {
			return nil
		}
		link = c.Link
		s.count("call: " + f.Kind)
		return &busemu.Fault{Loss: busemu.Drop}
	}), true
}

// silentRead makes the store never answer one read of a change feed.
func silentRead(s *storm, f Fault) (func(), bool) {
	var once sync.Once
	return s.w.FaultCosmos(func(c *cosmosemu.Call) (fault *cosmosemu.Fault) {
		if c.Operation == cosmosemu.OpReadChangeFeed {
			once.Do(func() {
				s.count("call: " + f.Kind)
				fault = &cosmosemu.Fault{Loss: cosmosemu.Drop}
			})
		}
		return fault
	}), true
}
