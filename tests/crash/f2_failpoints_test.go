//go:build faults

package crash

import (
	"fmt"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F2: a relay repeatedly kills itself with -9 at a named place of its code while another one runs.
func TestRelayKilledAtNamedPlaces(t *testing.T) {
	const full, limit = 50, 5 * time.Second
	for _, c := range []struct {
		name, place string
		hits        int // maximum number of passes before the kill
	}{
		{"after the send, before the checkpoint", "page-sent", 40},
		{"in the middle of a batch", "sent", 60},
		{"between renewal and send", "lease-renewed", 12},
	} {
		t.Run(c.place, func(t *testing.T) {
			t.Parallel() // the test mostly waits for leases to expire
			kills := testkit.Count(t, full)
			seed := testkit.Seed(t, 2)
			w := start(t, plan{seed: seed, tags: []string{"failpoint"}, relays: 1, contacts: 80, rate: 60})
			var outages []outage
			for range kills {
				hits := 1 + w.rnd.IntN(c.hits)
				victim := w.addRelay(fmt.Sprintf("FAILPOINT=%s:%d", c.place, hits))
				awaitEnd(t, victim)
				struck := w.strike(w.owned(victim))
				w.forget(victim)
				w.await(struck, patience)
				outages = append(outages, struck...)
			}
			r := testkit.Result{Fault: "F2", Name: "kill -9 of a relay " + c.name, Seed: seed, Injections: int64(kills), Of: full}
			r.Recovery = w.finish(&r).Seconds()
			wantTakeover(t, w.takeovers(outages), limit, &r)
			if r.DuplicatesSent > int64(kills*batchSize) {
				t.Errorf("%d duplicates were sent in %d kills, want at most %d for each", r.DuplicatesSent, kills, batchSize)
			}
			w.drain()
			testkit.Record(t, r)
		})
	}
}

// F2: the only relay kills itself while it creates the leases of a new processor. Its successor finds
// some or none of them and reads from the beginning. The broker drops the duplicates.
func TestRelayKilledWhileItMakesLeases(t *testing.T) {
	const full, ranges = 50, 4
	kills := testkit.Count(t, full)
	seed := testkit.Seed(t, 3)
	w := start(t, plan{seed: seed, tags: []string{"failpoint"}, contacts: 40, rate: 20})
	var outages []outage
	everything := map[string]bool{}
	acked, _, _ := w.load.History()
	for id := range acked {
		everything[id] = true
	}
	for n := range kills {
		processor := fmt.Sprintf("FEEDBOX_PROCESSOR=create-%d", n)
		w.e.AdoptParked(t, fmt.Sprintf("create-%d", n))
		place := [...]string{"lease-creating", "lease-created"}[w.rnd.IntN(2)]
		victim := w.addRelay(processor, fmt.Sprintf("FAILPOINT=%s:%d", place, 1+w.rnd.IntN(ranges)))
		awaitEnd(t, victim)
		w.forget(victim)
		struck := []outage{{at: time.Now(), keys: everything, seen: w.consumer.Count()}}
		successor := w.addRelay(processor)
		w.await(struck, patience)
		outages = append(outages, struck...)

		leases := w.e.OpenLeases(t, fmt.Sprintf("create-%d", n))
		testkit.Eventually(t, time.Minute, "all ranges owned by the successor", func() bool {
			owners := leases.Owners(t.Context())
			for _, owner := range owners {
				if owner != successor.Name {
					return false
				}
			}
			return len(owners) == ranges
		})
		if n+1 < kills {
			successor.Kill()
			w.forget(successor)
		}
	}
	r := testkit.Result{
		Fault: "F2", Name: "kill -9 of a relay while it makes leases", Seed: seed, Injections: int64(kills), Of: full,
		Note: "every successor reads from the beginning, hence the duplicates",
	}
	r.Recovery = w.finish(&r).Seconds()
	wantTakeover(t, w.takeovers(outages), 5*time.Second, &r)
	w.drain()
	testkit.Record(t, r)
}

// awaitEnd waits until a process has killed itself.
func awaitEnd(t *testing.T, p *testkit.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatalf("%s did not reach the failpoint in %s", p.Name, patience)
	}
}
