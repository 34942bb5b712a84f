package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// siege returns the length of the fault of F25. It is three times the window of the broker's duplicate
// detection, so that an event that is sent again arrives twice. A sample has a shorter window, because
// most of the processor time is that of polls during the siege.
func siege(t testing.TB) time.Duration {
	t.Helper()
	if testkit.Scale(t) >= 0.05 {
		return 30 * time.Minute
	}
	return time.Duration(testenv.Sample(t, 6, 30)) * time.Minute
}

var busy = busemu.Fault{Err: &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}}

// F25: the broker accepts no message of one key of 200, because it is busy for that key or never
// answers, for longer than the duplicate window. The other keys are as fast as without the fault, no
// event is sent twice, and the events of the key arrive in order once the broker accepts them. The
// same holds if the container of parked events refuses this key, up to the capacity of a range.
// Without a scale only two of the five kinds run.
func TestOneKeyOfManyWaits(t *testing.T) {
	t.Parallel()
	plain := healthyP99(t, world.Topology{})
	for _, c := range []struct {
		name, title string
		fault       busemu.Fault
		full        bool // its partition of the parked container is full
		topology    world.Topology
	}{
		{"busy", "the broker is busy for one key of 200", busy, false, world.Topology{}},
		{"busy-packed", "the broker is busy for one key of 200, several keys in a batch", busy, false, world.Topology{PackKeys: true}},
		{"busy-full", "the same, and the key cannot be parked", busy, true, world.Topology{}},
		{"silent", "the broker never answers for one key of 200", busemu.Fault{Loss: busemu.Drop}, false, world.Topology{}},
		{"silent-full", "the same, and the key cannot be parked", busemu.Fault{Loss: busemu.Drop}, true, world.Topology{}},
	} {
		if testkit.Scale(t) < 0.05 && c.name != "busy-packed" && c.name != "silent-full" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			runScenario(t, testkit.Result{
				Fault: "F25", Name: c.title, Seed: 25, Of: 30,
				Note: "30 min, three times the duplicate window; the others' p99 is at most twice that without the fault",
			}, besieged(t, c.topology), func(s *scenario) {
				const sick = "sick"
				l := s.newSteady(contacts(199)...)
				l.run(time.Minute, 60, sick) // until every key has a position
				end := s.failSends(sick, c.fault)
				if c.full {
					l.fewHeld(besiegedEvents(s))
					open := s.refuseParking(sick)
					defer open()
				}
				began := time.Now()
				l.run(siege(s), besiegedEvents(s), sick)
				ended := time.Now()
				end()
				sorted, missing := l.latencies(began, ended, sick)
				if p99 := quantile(sorted, 0.99); p99 > 2*plain {
					s.Errorf("the other keys' p99 was %s, want at most twice the %s without the fault", p99, plain)
				}
				s.Logf("%d events of others: p50 %s, p99 %s, longest %s, %d missing at the end; without the fault p99 %s",
					len(sorted), quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 1), missing, plain)
				s.settleBesieged(l)
			})
		})
	}
}

// besieged returns the topology of F25.
func besieged(t testing.TB, w world.Topology) world.Topology {
	t.Helper()
	w.APIs, w.Consumers, w.Relays, w.DuplicateWindow = -1, -1, 2, siege(t)/3
	w.PollMin, w.PollMax = 200*time.Millisecond, time.Second
	return w
}

// failSends applies fault to sends of key, until end is called.
func (s *scenario) failSends(key string, fault busemu.Fault) (end func()) {
	return s.FaultBus(func(call *busemu.Call) *busemu.Fault {
		if call.Operation != busemu.OpSend || !slices.Contains(call.Sessions, key) {
			return nil
		}
		s.struck.Add(1)
		f := fault
		return &f
	})
}

// fewHeld bounds the events of a key that can be neither sent nor parked.
// TestUnparkableKeyStopsNoOtherKey has more of them.
func (l *steady) fewHeld(events int) { l.every = max(l.every, events/450) }

// besiegedEvents returns the number of events of a siege: at least one every two seconds.
func besiegedEvents(t testing.TB) int {
	return max(int(siege(t)/(2*time.Second)), testkit.Count(t, 9_000)*int(siege(t)/time.Minute)/30)
}

// F25: a key that can be neither sent nor parked has more documents than fit into the memory of its
// range. The others continue. Once the key's events can be sent, all events arrive in order and once.
func TestUnparkableKeyStopsNoOtherKey(t *testing.T) {
	if testkit.Scale(t) < 0.05 {
		t.Skip("runs with FEEDBOX_FAULT_SCALE=0.05 and above: make faults")
	}
	runScenario(t, testkit.Result{
		Fault: "F25", Name: "the broker is busy for one key of 200 that cannot be parked, with more events than fit into memory", Seed: 252, Of: 30,
		Note: "30 min, three times the duplicate window; the others of the range continue",
	}, besieged(t, world.Topology{}), func(s *scenario) {
		const sick = "sick"
		l := s.newSteady(contacts(199)...)
		l.run(time.Minute, 60, sick)
		end, open := s.failSends(sick, busy), s.refuseParking(sick)
		began := time.Now()
		l.every = 2
		l.run(siege(s), 1_400, sick) // 700 of the key, two documents each
		s.Sleep(10 * time.Second)
		if _, missing := l.latencies(began, time.Now(), sick); missing > 0 {
			s.Errorf("%d events of the others did not arrive while one key waits", missing)
		}
		end()
		open()
		s.settleBesieged(l)
	})
}

// healthyP99 returns the latency of events without faults.
func healthyP99(t *testing.T, topology world.Topology) (p99 time.Duration) {
	t.Helper()
	runWorld(t, &testkit.Result{Seed: testkit.Seed(t, 25)}, besieged(t, topology), func(s *scenario) {
		l := s.newSteady(contacts(200)...)
		l.run(time.Minute, 60, "")
		began := time.Now()
		l.run(siege(s), besiegedEvents(s), "")
		s.Sleep(10 * time.Second)
		sorted, missing := l.latencies(began, time.Now(), "none")
		if p99 = quantile(sorted, 0.99); missing > 0 {
			s.Errorf("%d events are missing without any fault", missing)
		}
	})
	return p99
}

// settleBesieged waits until all events have arrived without an operator, once and in order, and none
// is parked.
func (s *scenario) settleBesieged(l *steady) {
	s.Helper()
	ended := time.Now()
	if !s.Eventually(10*time.Minute, func() bool { return int(s.Accepted()) >= len(l.written) }) {
		s.Errorf("10 min after the fault the broker has %d of %d events", s.Accepted(), len(l.written))
	}
	s.result.Recovery = time.Since(ended).Seconds()
	s.Eventually(time.Minute, func() bool { return len(s.parked()) == 0 })
	if ids := s.parked(); len(ids) > 0 {
		s.Errorf("%d events are still parked: %.300v", len(ids), ids)
	}
	run := s.Settle()
	run.Acked = nil
	s.verify(run)
	if n := s.Duplicates(); n > 0 {
		s.Errorf("%d events were sent twice within the duplicate window", n)
	}
}

// F25: an event of one of 41 keys is refused, and the container of parked events refuses all writes for
// longer than the duplicate window. Each event of the other keys is sent once. The refused event and
// the later ones of its key wait, and are parked once the container accepts writes.
func TestRefusedKeyWaitsForParkedStore(t *testing.T) {
	const refused, keys = "refused", 40
	runScenario(t, testkit.Result{
		Fault: "F25", Name: "one key of 41 is refused while nothing can be parked", Seed: 251, Of: 30,
		Note: "30 min, three times the duplicate window; each event of the others was sent once",
	}, besieged(t, world.Topology{}), func(s *scenario) {
		l := s.newSteady(contacts(keys)...)
		l.run(time.Minute, 60, refused)
		before := l.last[refused]
		l.fewHeld(besiegedEvents(s))
		open := s.refuseParking("")
		began := time.Now()
		l.write(refused, fmt.Sprintf(`{"id":%q,"partitionKey":%q,"type":"domainEvent","data":"text","ttl":-1}`, eventID(refused, before+1), refused))
		l.run(siege(s), besiegedEvents(s), refused)
		if sorted, missing := l.latencies(began, time.Now().Add(-time.Minute), refused); missing > 0 {
			s.Errorf("%d of %d events of the others, a minute old or more, have not arrived", missing, len(sorted))
		}
		open()
		var want []string
		for n := before + 1; n <= l.last[refused]; n++ {
			want = append(want, eventID(refused, n))
		}
		slices.Sort(want)
		ended := time.Now()
		if !s.Eventually(10*time.Minute, func() bool { return int(s.Accepted()) >= len(l.written)-len(want) && len(s.parked()) >= len(want) }) {
			s.Errorf("10 min after the fault the broker has %d of %d events", s.Accepted(), len(l.written)-len(want))
		}
		s.result.Recovery = time.Since(ended).Seconds()
		if got := s.parked(); !slices.Equal(got, want) {
			s.Errorf("parked are\n %.500v, want exactly the refused event and its followers\n %.500v", got, want)
		}
		run := s.Settle()
		l.history(run)
		run.Poison = map[string]bool{}
		for _, id := range want {
			run.Poison[id] = true
		}
		s.verify(run)
		if n := s.Duplicates(); n > 0 {
			s.Errorf("%d events were sent twice within the duplicate window", n)
		}
	})
}
