package faults

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/busemu"
	"feedbox/tests/sim/world"
	"feedbox/tests/testkit"
)

// F13: the broker is busy, the topic is disabled or full, links are detached by force, tokens expire
// and new ones are refused. The relay backs off without counting attempts, stays ready, because a
// restart would not help, and continues automatically.
func TestBrokerRefuses(t *testing.T) {
	const full = 20 // rounds
	runScenario(t, testkit.Result{
		Fault: "F13", Name: "broker busy, topic disabled, quota exceeded, links detached, tokens expired", Seed: 13, Of: 100,
		Note: "at most one attempt a second and lease; nothing parked; relays stay ready",
	}, world.Topology{APIs: 1, Relays: -1, Consumers: 1, Partitions: 2}, func(s *scenario) {
		relays := []*relayProcess{s.startRelay("relay-a", nil), s.startRelay("relay-b", nil)}
		s.StartLoad(world.LoadOptions{Writers: 3, Pace: 3 * time.Second})
		s.Sleep(20 * time.Second)
		count := countAttempts(s)
		for round := range max(1, testkit.Count(s, full)) {
			for i, o := range outages(s) {
				length := 25 * time.Second
				if (round+i)%5 == 0 {
					length = 150 * time.Second // a stuck relay is not ready after two minutes
				}
				s.struck.Add(1)
				s.Trace().Add("test", "%s for %s", o.name, length)
				end := o.begin()
				s.Sleep(5 * time.Second) // until the backoff has grown
				sends, links, tokens := count.sends.Load(), count.links.Load(), count.tokens.Load()
				accepted := s.Accepted()
				s.Sleep(length)
				sends, links, tokens = count.sends.Load()-sends, count.links.Load()-links, count.tokens.Load()-tokens
				// A link needs two tokens.
				limit := int64(length.Seconds()) * int64(len(s.leases())) * o.tries
				s.Logf("%s for %s: %d sends, %d links, %d tokens", o.name, length, sends, links, tokens)
				if sends+links+tokens == 0 || max(sends, links, tokens/2) > limit {
					s.Errorf("%s: %d sends, %d links, %d tokens in %s for %d leases, want 1 to %d", o.name, sends, links, tokens, length, len(s.leases()), limit)
				}
				if s.Accepted() != accepted {
					s.Errorf("%s: %d events were accepted", o.name, s.Accepted()-accepted)
				}
				wantReady(s, relays, o.name)
				end()
				ended := time.Now()
				if !s.Eventually(30*time.Second, func() bool { return s.Accepted() > accepted }) {
					s.Errorf("%s: 30 s after its end nothing was accepted", o.name)
				}
				s.result.Recovery = max(s.result.Recovery, time.Since(ended).Seconds())
				s.Sleep(10 * time.Second)
			}
		}
		run := s.judge()
		if len(run.Parked) > 0 {
			s.Errorf("%d events were parked", len(run.Parked))
		}
		wantReady(s, relays, "in the end")
	})
}

// wantReady fails the test for each relay that is not ready.
func wantReady(s *scenario, relays []*relayProcess, when string) {
	s.Helper()
	for _, r := range relays {
		if status, body := r.ask("/readyz"); status != http.StatusOK {
			s.Errorf("%s: %s is not ready: %d %s", when, r.name, status, body)
		}
	}
}

// attempts counts the requests of relays to the broker.
type attempts struct{ sends, links, tokens atomic.Int64 }

// countAttempts starts counting, without the requests of consumers.
func countAttempts(s *scenario) *attempts {
	var a attempts
	s.FaultBus(func(c *busemu.Call) *busemu.Fault {
		if c.Receiver || strings.Contains(strings.ToLower(c.Entity), "subscriptions") {
			return nil
		}
		switch c.Operation {
		case busemu.OpSend:
			a.sends.Add(1)
		case busemu.OpAttach:
			a.links.Add(1)
		case busemu.OpPutToken:
			a.tokens.Add(1)
		default:
		}
		return nil
	})
	return &a
}

// outage is a kind of refusal. begin starts it and returns a func that ends it.
type outage struct {
	name string
	// tries is the number of attempts that the client makes before it returns the failure, where
	// its retries cannot be disabled (azservicebus, internal/amqpLinks.go, Retry).
	tries int64
	begin func() (end func())
}

func outages(s *scenario) []outage {
	refuse := func(op busemu.Operation, f busemu.Fault) func() {
		return s.FaultBus(func(c *busemu.Call) *busemu.Fault {
			if c.Operation != op {
				return nil
			}
			return &f
		})
	}
	return []outage{
		{"server busy", 1, func() func() {
			return refuse(busemu.OpSend, busemu.Fault{Err: &busemu.Error{Condition: busemu.ServerBusy, Description: "The server is busy."}})
		}},
		{"topic disabled", 1, func() func() {
			s.SetStatus(busemu.StatusSendDisabled)
			return func() { s.SetStatus(busemu.StatusActive) }
		}},
		{"quota exceeded", 1, func() func() {
			s.SetQuota(1)
			return func() { s.SetQuota(0) }
		}},
		{"links detached", 3, func() func() {
			return refuse(busemu.OpSend, busemu.Fault{Detach: &busemu.Error{Condition: busemu.DetachForced, Description: "The link was detached."}})
		}},
		{"tokens expired", 1, func() func() {
			end := refuse(busemu.OpPutToken, busemu.Fault{Err: &busemu.Error{Condition: busemu.UnauthorizedAccess, Description: "ExpiredToken: The token is expired."}})
			s.Bus().ExpireTokens()
			return end
		}},
	}
}
