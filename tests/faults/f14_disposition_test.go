package faults

import (
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F14: the broker accepts a batch, but its answer is lost: the relay times out, or the connection
// breaks. The relay sends again, and the broker drops the duplicates (I4).
func TestLostDispositions(t *testing.T) {
	const full = 3600 // seconds
	runScenario(t, testkit.Result{
		Fault: "F14", Name: "the answer to 5 % of sends is lost, half of them with the connection", Seed: 14, Of: 1000,
	}, world.Topology{APIs: 1, Consumers: 1}, func(s *scenario) {
		s.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if c.Operation != busemu.OpSend || !s.chance(0.05) {
				return nil
			}
			s.struck.Add(1)
			return &busemu.Fault{Execute: true, Loss: s.loss()}
		})
		s.StartLoad(world.LoadOptions{Writers: 3, Pace: 700 * time.Millisecond})
		s.Sleep(max(40*time.Second, time.Duration(testkit.Count(s, full))*time.Second))
		run := s.judge()
		s.sessionsHandledOnce(run)
		if s.Duplicates() == 0 {
			s.Error("nothing was sent twice: the test proves nothing")
		}
	})
}

// loss is one of the two ways to lose an answer: with the connection, or without.
func (s *scenario) loss() busemu.Loss {
	if s.chance(0.5) {
		return busemu.Reset
	}
	return busemu.Drop
}
