//go:build faults

package crash

import (
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// idleTimeout is the AMQP idle timeout of the client. It requires a frame from the broker at least
// every half of it (go-amqp, conn.go, defaultIdleTimeout).
const idleTimeout = time.Minute

// F12: the network between one relay and both services is cut, in one or both directions, for twice the
// expiry of its leases. The other relay takes over. Data in flight arrives when the network heals, and
// both relays continue.
func TestNetworkCut(t *testing.T) {
	const full, limit = 20, 5 * time.Second
	cuts := testkit.Count(t, full)
	seed := testkit.Seed(t, 12)
	for _, c := range []struct {
		name     string
		up, down testkit.Way
	}{
		{"both ways", testkit.Way{Hold: true}, testkit.Way{Hold: true}},
		{"one way, to the services", testkit.Way{Hold: true}, testkit.Way{}},
		{"one way, from the services", testkit.Way{}, testkit.Way{Hold: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, plan{seed: seed, relays: 1, contacts: 60, rate: 60})
			network, behind := w.e.Through(t)
			victim := w.addRelayAt(behind)
			var outages []outage
			for range cuts {
				w.balanced()
				time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
				struck := w.strike(w.owned(victim))
				network.Set(c.up, c.down)
				w.await(struck, patience)
				time.Sleep(time.Until(struck[0].at.Add(2 * expiry)))
				network.Heal()
				outages = append(outages, struck...)
			}
			w.balanced()
			r := testkit.Result{Fault: "F12", Name: "network of a relay cut " + c.name + " for twice the expiry", Seed: seed, Injections: int64(cuts), Of: full}
			r.Recovery = w.finish(&r).Seconds()
			wantTakeover(t, w.takeovers(outages), limit, &r)
			w.drain() // fails if a stuck goroutine keeps a relay from ending
			testkit.Record(t, r)
		})
	}
}

// F12: a device on the network silently drops the connections of the only relay; new connections work.
// The relay detects that and continues.
func TestConnectionsForgottenOnTheWay(t *testing.T) {
	const full, limit = 5, 2 * idleTimeout
	times := testkit.Count(t, full)
	seed := testkit.Seed(t, 121)
	for _, c := range []struct {
		name   string
		forget func(*testkit.Network)
	}{
		{"Service Bus", func(n *testkit.Network) { n.ServiceBus.Lose() }},
		{"Cosmos DB", func(n *testkit.Network) { n.Cosmos.Lose() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, plan{seed: seed, contacts: 40, rate: 20})
			network, behind := w.e.Through(t)
			w.addRelayAt(behind)
			w.settled()
			w.mapKeys()
			var outages []outage
			for range times {
				time.Sleep(time.Duration(1000+w.rnd.IntN(1000)) * time.Millisecond)
				all := w.strikeAll()
				c.forget(network)
				w.await(all, limit)
				outages = append(outages, all...)
			}
			r := testkit.Result{
				Fault: "F12", Name: "connections to " + c.name + " forgotten on the way", Seed: seed, Injections: int64(times), Of: full,
				Note: "takeover: until the relay, the only one, had new connections and sent again",
			}
			r.Recovery = w.finish(&r).Seconds()
			wantTakeover(t, w.takeovers(outages), limit, &r)
			w.drain()
			testkit.Record(t, r)
		})
	}
}

// F12: a slow and a lossy network. Relays keep their leases even with an expiry of 3 s, and events arrive.
func TestSlowAndLossyNetwork(t *testing.T) {
	const full = 120 // seconds
	period := time.Duration(max(15, testkit.Count(t, full))) * time.Second
	seed := testkit.Seed(t, 122)
	for _, c := range []struct {
		name string
		way  testkit.Way
	}{
		{"500 ms of delay until an answer", testkit.Way{Delay: 250 * time.Millisecond}},
		{"10 % of segments lost", testkit.Way{Lose: 0.1, Repeat: 200 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, plan{seed: seed, contacts: 60, rate: 60})
			network, behind := w.e.Through(t)
			w.addRelayAt(behind)
			w.addRelayAt(behind)
			w.settled()
			w.balanced()
			w.flowing() // connecting takes 15 round trips and must not be measured
			owners := w.leases.Owners(t.Context())
			before := w.consumer.Count()
			all, idle := testkit.ProcessorTime()
			network.Set(c.way, c.way)
			time.Sleep(period)
			allAfter, idleAfter := testkit.ProcessorTime()
			busy := allAfter > all && float64(idleAfter-idle) < 0.1*float64(allAfter-all) // then a process may stand still for an expiry
			arrived := w.consumer.Count() - before
			if want := int(period.Seconds()) * 60 / 2; arrived < want && !busy {
				t.Errorf("%d events arrived in %s, want at least %d", arrived, period, want)
			}
			moved := 0
			for r, owner := range w.leases.Owners(t.Context()) {
				if owners[r] != owner {
					moved++
				}
			}
			t.Logf("%d events arrived in %s, %d leases have other owners than before; no idle processor: %t", arrived, period, moved, busy)
			if moved > 0 && !busy {
				t.Errorf("%d leases have other owners than before", moved)
			}
			network.Heal()
			r := testkit.Result{Fault: "F12", Name: c.name + " between relays and services", Seed: seed, Injections: int64(period.Seconds()), Of: full, Note: "injections: seconds"}
			r.Recovery = w.finish(&r).Seconds()
			w.drain()
			testkit.Record(t, r)
		})
	}
}
