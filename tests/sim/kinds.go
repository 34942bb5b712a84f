package sim

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/tests/sim/world"
)

// kind is a kind of fault. begin starts a fault. It returns a func that ends it, or nil if the
// fault has no end, and whether the fault could be started.
type kind struct {
	weight   int
	target   string        // "", "process", "key", a kind of process, or an emulator
	longest  time.Duration // maximum length
	expiries float64       // if set, the maximum length in lease expiries
	chance   float64       // maximum probability per call
	size     time.Duration // maximum size
	begin    func(s *storm, f Fault) (end func(), struck bool)
}

// loudKinds are faults that end in an error somewhere.
var loudKinds = map[string]kind{
	"crash":        {weight: 12, target: "process", longest: 20 * time.Second, begin: crash},
	"crash-relay":  {weight: 8, target: "relay", longest: 30 * time.Second, begin: crash},
	"crash-store":  {weight: 4, target: world.PartCosmos, longest: 8 * time.Second, begin: crash},
	"crash-broker": {weight: 4, target: world.PartBus, longest: 8 * time.Second, begin: crash},
	// Drawn separately, for plans with shops only: see NewPlan.
	"crash-shop":      {longest: 20 * time.Second, begin: crash},
	"crash-shoprelay": {longest: 30 * time.Second, begin: crash},

	"stop":         {weight: 6, target: "process", longest: 15 * time.Second, begin: stop},
	"relays-down":  {begin: relaysDown},
	"freeze":       {weight: 8, target: "relay", expiries: 3, begin: freeze},
	"freeze-other": {weight: 3, target: "process", longest: 25 * time.Second, begin: freeze},
	"freeze-store": {weight: 2, target: world.PartCosmos, longest: 15 * time.Second, begin: freeze},
	"freeze-bus":   {weight: 2, target: world.PartBus, longest: 15 * time.Second, begin: freeze},
	"reset":        {weight: 4, target: "process", begin: reset},
	"reset-store":  {weight: 3, target: world.PartCosmos, begin: reset},
	"reset-broker": {weight: 3, target: world.PartBus, begin: reset},

	"split": {weight: 5, target: "key", begin: func(s *storm, f Fault) (func(), bool) { return nil, s.splits() && s.w.Split(f.Target) }},
	"merge": {weight: 3, target: "key", begin: func(s *storm, f Fault) (func(), bool) { return nil, s.w.Merge(f.Target) }},
	"clock": {weight: 3, longest: 60 * time.Second, size: 10 * time.Minute, begin: clock},

	"store-throttles":   store(6, func(f Fault) cosmosemu.Fault { return cosmosemu.Throttled(f.Size / 10) }),
	"store-retry-with":  store(3, func(Fault) cosmosemu.Fault { return cosmosemu.RetryWith() }),
	"store-times-out":   store(3, func(Fault) cosmosemu.Fault { return cosmosemu.TimedOut() }),
	"store-fails":       store(3, func(Fault) cosmosemu.Fault { return cosmosemu.Failed() }),
	"store-unavailable": store(3, func(Fault) cosmosemu.Fault { return cosmosemu.Unavailable() }),
	"store-resets":      store(3, func(Fault) cosmosemu.Fault { return cosmosemu.Fault{Loss: cosmosemu.Reset} }),
	"store-loses-reply": store(6, func(Fault) cosmosemu.Fault { return cosmosemu.LostReply(cosmosemu.Reset) }),
	"store-truncates":   store(3, func(Fault) cosmosemu.Fault { return cosmosemu.LostReply(cosmosemu.Truncate) }),
	"store-is-slow":     store(3, func(f Fault) cosmosemu.Fault { return cosmosemu.Fault{Delay: f.Size / 4} }),

	"broker-busy": broker(4, busemu.OpSend, func(Fault) busemu.Fault {
		return busemu.Fault{Err: refusal(busemu.Error{Condition: busemu.ServerBusy})}
	}),
	"broker-detaches": broker(3, busemu.OpSend, func(Fault) busemu.Fault {
		return busemu.Fault{Detach: refusal(busemu.Error{Condition: busemu.DetachForced})}
	}),
	"broker-fails": broker(3, busemu.OpSend, func(Fault) busemu.Fault {
		return busemu.Fault{Err: refusal(busemu.Error{Condition: busemu.InternalError})}
	}),
	"broker-loses-ack": broker(6, busemu.OpSend, func(Fault) busemu.Fault { return busemu.Fault{Execute: true, Loss: busemu.Reset} }),
	"broker-keeps-ack": broker(4, busemu.OpSend, func(Fault) busemu.Fault { return busemu.Fault{Execute: true, Loss: busemu.Drop} }),
	"broker-is-slow":   broker(3, busemu.OpSend, func(f Fault) busemu.Fault { return busemu.Fault{Delay: f.Size / 4} }),
	"broker-hangs-up":  broker(3, "", func(Fault) busemu.Fault { return busemu.Fault{Loss: busemu.Reset} }),
	"settlement-lost":  broker(3, busemu.OpSettle, func(Fault) busemu.Fault { return busemu.Fault{Execute: true, Loss: busemu.Reset} }),
	"delivery-is-slow": broker(2, busemu.OpDeliver, func(f Fault) busemu.Fault { return busemu.Fault{Delay: f.Size / 4} }),
	"token-refused": broker(2, busemu.OpPutToken, func(Fault) busemu.Fault {
		return busemu.Fault{Err: refusal(busemu.Error{Condition: busemu.UnauthorizedAccess})}
	}),
	"attachment-fails": broker(2, busemu.OpAttach, func(Fault) busemu.Fault {
		return busemu.Fault{Err: refusal(busemu.Error{Condition: busemu.InternalError})}
	}),
	"keys-busy":    someKeys(4, busemu.Fault{Err: refusal(busemu.Error{Condition: busemu.ServerBusy})}),
	"keys-ignored": someKeys(3, busemu.Fault{Loss: busemu.Drop}),

	"topic-disabled":   {weight: 3, longest: 25 * time.Second, begin: disable(busemu.StatusDisabled)},
	"sending-disabled": {weight: 3, longest: 25 * time.Second, begin: disable(busemu.StatusSendDisabled)},
	"topic-full":       {weight: 3, longest: 25 * time.Second, begin: full},
	"consumers-slow":   {weight: 3, longest: 40 * time.Second, size: 3 * time.Second, begin: slow},
	"poison":           {weight: 3, target: "key", begin: poison},
}

// kinds are all kinds of faults by name.
var kinds = func() map[string]kind {
	all := maps.Clone(loudKinds)
	maps.Copy(all, quietKinds)
	maps.Copy(all, consumerKinds)
	return all
}()

// kindsInOrder is sorted, because otherwise a draw would not be repeatable.
var kindsInOrder = slices.Sorted(maps.Keys(kinds))

func crash(s *storm, f Fault) (func(), bool) {
	if !s.w.Crash(f.Target) {
		return nil, false
	}
	return func() { s.w.Start(f.Target) }, true
}

func stop(s *storm, f Fault) (func(), bool) {
	if !s.w.Stop(f.Target) {
		return nil, false
	}
	return func() { s.w.Start(f.Target) }, true
}

// relaysDown keeps every relay down, even if another fault ends by starting one.
func relaysDown(s *storm, _ Fault) (func(), bool) {
	s.down.Store(true)
	for _, name := range s.w.Kind("relay") {
		s.w.Stop(name)
	}
	return func() {
		s.down.Store(false)
		s.w.Start(s.w.Kind("relay")...)
	}, true
}

func freeze(s *storm, f Fault) (func(), bool) {
	if !s.w.Freeze(f.Target) {
		return nil, false
	}
	return func() { s.w.Thaw(f.Target) }, true
}

func reset(s *storm, f Fault) (func(), bool) { return nil, s.w.Reset(f.Target) }

func clock(s *storm, f Fault) (func(), bool) {
	s.w.SkewCosmos(f.Size)
	return func() { s.w.SkewCosmos(0) }, true
}

// store returns a kind of faults in calls to the Cosmos DB emulator.
func store(weight int, fault func(Fault) cosmosemu.Fault) kind {
	return kind{weight: weight, longest: 30 * time.Second, chance: 0.4, size: 10 * time.Second, begin: func(s *storm, f Fault) (func(), bool) {
		d := s.dice(f)
		return s.w.FaultCosmos(func(*cosmosemu.Call) *cosmosemu.Fault {
			if !d.roll() {
				return nil
			}
			s.count("call: " + f.Kind)
			made := fault(f)
			return &made
		}), true
	}}
}

// broker returns a kind of faults in one operation of the Service Bus emulator; "" is any.
func broker(weight int, op busemu.Operation, fault func(Fault) busemu.Fault) kind {
	return kind{weight: weight, longest: 30 * time.Second, chance: 0.4, size: 10 * time.Second, begin: func(s *storm, f Fault) (func(), bool) {
		d := s.dice(f)
		return s.w.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if op != "" && c.Operation != op || !d.roll() {
				return nil
			}
			s.count("call: " + f.Kind)
			made := fault(f)
			return &made
		}), true
	}}
}

// someKeys returns a kind of faults in sends with a message of one key in eight. The keys are the
// same during one fault.
func someKeys(weight int, fault busemu.Fault) kind {
	const among = 8
	return kind{weight: weight, longest: 60 * time.Second, begin: func(s *storm, f Fault) (func(), bool) {
		hit := func(session string) bool {
			h := fnv.New64a()
			_, _ = h.Write([]byte(f.At.String() + session)) // never fails
			return h.Sum64()%among == 0
		}
		return s.w.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if c.Operation != busemu.OpSend || !slices.ContainsFunc(c.Sessions, hit) {
				return nil
			}
			s.count("call: " + f.Kind)
			made := fault
			return &made
		}), true
	}}
}

func refusal(e busemu.Error) *busemu.Error {
	e.Description = "injected by the simulation"
	return &e
}

func disable(status busemu.Status) func(*storm, Fault) (func(), bool) {
	return func(s *storm, _ Fault) (func(), bool) {
		s.w.SetStatus(status)
		return func() { s.w.SetStatus(busemu.StatusActive) }, true
	}
}

func full(s *storm, _ Fault) (func(), bool) {
	s.w.SetQuota(1)
	return func() { s.w.SetQuota(0) }, true
}

func slow(s *storm, f Fault) (func(), bool) {
	s.w.SlowConsumers(f.Size)
	return func() { s.w.SlowConsumers(0) }, true
}

func poison(s *storm, f Fault) (func(), bool) {
	s.begun.Go(func() {
		if err := s.w.Poison(f.Target+"-"+f.At.String(), 2); err != nil {
			s.w.Trace().Add("world", "poison: %v", err)
		}
	})
	return nil, true
}

// dice decides for each call. It is safe for concurrent use.
type dice struct {
	p   float64
	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

func (s *storm) dice(f Fault) *dice {
	return &dice{p: f.P, rnd: rand.New(rand.NewPCG(s.plan.Seed, uint64(f.At)))}
}

func (d *dice) roll() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.Float64() < d.p
}
