//go:build faults

package pairs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

const everyPair = true

// Relay, API, store and broker are killed with -9 repeatedly under load, and consumers stop
// and start. Every acknowledged change is stored and arrives in order, and the inbox passes
// it to the handler once.
func TestAllAreKilled(t *testing.T) {
	cycles := testenv.Count(t, "BROKER_KILLS", 2)
	seed := testkit.Seed(t, 1)
	eachPair(t, func(t *testing.T, s storeKind, b brokerKind) {
		most := cmp.Or(s.cycles, cycles)
		for done := 0; done < cycles; done += most {
			t.Run(fmt.Sprintf("after %d", done), func(t *testing.T) {
				newWorld(t, s.open(t), b.open(t)).kill(t, min(most, cycles-done), seed+uint64(done))
			})
		}
	})
}

// kill kills each process cycles times and verifies the result.
func (w *world) kill(t *testing.T, cycles int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	began, last := time.Now(), 0
	w.relays = append(w.relays, w.relay(t), w.relay(t))
	stop := w.broker.consume(t, &w.ledger)
	kills := []func(){
		func() {
			w.relays[last].Kill()
			w.relays[last] = w.relay(t)
			last = 1 - last
		},
		func() {
			w.apis.Kill()
			w.apis, _ = testkit.StartAPIWith(t, w.binaries, w.env)
		},
		func() {
			stop()
			stop = w.broker.consume(t, &w.ledger)
		},
	}
	for _, kill := range []func(t *testing.T){w.store.kill, w.broker.kill} {
		if kill != nil {
			kills = append(kills, func() { kill(t) })
		}
	}
	w.under(t, w.load(t, seed), func(changed func()) {
		for range cycles {
			for _, n := range random.Perm(len(kills)) {
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
				kills[n]()
			}
			changed()
		}
		for i, relay := range w.relays {
			if relay.Ended() { // its store or broker was away when it started
				w.relays[i] = w.relay(t)
			}
		}
	})
	t.Logf("%d cycles of %d in %s", cycles, len(kills), time.Since(began).Round(time.Second))
}

// The same for the order service. Its consumer keeps inbox and totals in the store.
func TestOrdersAreKilled(t *testing.T) { orders(t, "TestPartsAreKilled") }

// under runs hurt while the service is under load, and verifies the result. The function
// changed waits until clients have made more changes.
func (w *world) under(t *testing.T, load *testkit.Workload, hurt func(changed func())) {
	t.Helper()
	stop := testkit.Background(t, load)
	changed := func() {
		t.Helper()
		before := load.Done()
		testkit.Eventually(t, time.Minute, "twenty more changes", func() bool { return load.Done() > before+20 })
	}
	changed()
	hurt(changed)
	stop()
	var history testkit.History
	history.Add(load)
	w.judge(t, &history)
}
