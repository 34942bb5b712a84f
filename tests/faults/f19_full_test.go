package faults

import (
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F19: consumers are slow, then stopped, until the topic is full. The relay backs off, the API is not
// affected, and the backlog drains once there is room.
func TestFullTopic(t *testing.T) {
	const full = 3600 // seconds of the full topic
	runScenario(t, testkit.Result{
		Fault: "F19", Name: "consumers slow, then gone, until the topic is full", Seed: 19, Of: 4000,
		Note: "injections are the refused sends; at most one attempt a second and lease; no request to the API failed",
	}, world.Topology{APIs: 1, Relays: 2, Consumers: 1, Partitions: 2}, func(s *scenario) {
		var sends atomic.Int64
		s.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if c.Operation == busemu.OpSend {
				sends.Add(1)
			}
			return nil
		})
		load := s.StartLoad(world.LoadOptions{Writers: 3, Pace: 600 * time.Millisecond})
		s.SlowConsumers(2 * time.Second)
		s.Sleep(10 * time.Second)
		s.Stop("consumer-0")
		before, err := s.Bus().Counters(world.Topic)
		if err != nil {
			s.Fatal(err)
		}
		s.SetQuota(24 << 10)
		filled := s.Eventually(5*time.Minute, func() bool {
			c, err := s.Bus().Counters(world.Topic)
			return err == nil && c.Refused > before.Refused
		})
		if !filled {
			s.Fatal("the topic did not fill up")
		}
		s.Sleep(10 * time.Second) // until the backoff is at its maximum
		accepted, attempts := s.Accepted(), sends.Load()
		const least = 30
		outage := time.Duration(max(least, testkit.Count(s, full))) * time.Second
		s.Sleep(outage)
		attempts = sends.Load() - attempts
		limit := int64(outage.Seconds()) * int64(len(s.leases()))
		s.Logf("%d sends in %s for %d leases, %d accepted", attempts, outage, len(s.leases()), s.Accepted()-accepted)
		if attempts == 0 || attempts > limit {
			s.Errorf("%d attempts to send in %s for %d leases, want 1 to %d", attempts, outage, len(s.leases()), limit)
		}
		after, err := s.Bus().Counters(world.Topic)
		if err != nil {
			s.Fatal(err)
		}
		s.struck.Add(after.Refused - before.Refused)
		load.Stop()
		for status, n := range load.Requests() {
			if status >= 400 && status != 404 && status != 409 && status != 410 && status != 412 || status == 0 && n > 3 { // Stop aborts up to three
				s.Errorf("%d requests to the API were answered with %d while the topic was full", n, status)
			}
		}
		s.judge()
	})
}
