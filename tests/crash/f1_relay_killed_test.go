//go:build faults

package crash

import (
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F1: a relay is repeatedly killed with -9 at random times under 200 writes a second, and replaced. No
// event is lost or out of order, and the broker drops all duplicates.
func TestRelayKilledAtRandom(t *testing.T) {
	const full, limit = 100, 5 * time.Second
	kills := testkit.Count(t, full)
	seed := testkit.Seed(t, 1)
	w := start(t, plan{seed: seed, relays: 3, contacts: 120, rate: 200, emulator: []string{"--ephemeral", "--partitions", "6"}})
	w.balanced()

	var outages []outage
	for range kills {
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		struck := w.strike(w.owned(victim))
		victim.Kill()
		w.forget(victim)
		w.addRelay()
		w.await(struck, patience)
		outages = append(outages, struck...)
	}

	r := testkit.Result{Fault: "F1", Name: "kill -9 of a relay at random under 200 writes/s", Seed: seed, Injections: int64(kills), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	wantTakeover(t, w.takeovers(outages), limit, &r)
	if r.DuplicatesSent > int64(kills*batchSize) {
		t.Errorf("%d duplicates were sent in %d kills, want at most %d for each", r.DuplicatesSent, kills, batchSize)
	}
	w.drain()
	testkit.Record(t, r)
}
