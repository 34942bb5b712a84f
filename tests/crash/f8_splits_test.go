//go:build faults

package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"feedbox/tests/testkit"
)

// F8: a physical partition splits under load, and the owner of its lease kills itself with -9 while it
// creates the leases of the children. Another relay completes the split, and no event is lost or out of
// order.
func TestRelayKilledDuringSplits(t *testing.T) {
	const full, ranges = 20, 2
	splits := testkit.Count(t, full)
	seed := testkit.Seed(t, 8)
	w := start(t, plan{
		seed: seed, tags: []string{"failpoint"}, relays: 1, contacts: 80, rate: 60, emulator: []string{"--ephemeral", "--partitions", fmt.Sprint(ranges)},
	})
	for n := range splits {
		place := [...]string{"lease-creating", "lease-created"}[w.rnd.IntN(2)]
		victim := w.addRelay("FAILPOINT=" + place + ":2") // the first record may be its heartbeat
		w.balanced()
		owned := w.owned(victim)
		w.split(w.partition(owned[w.rnd.IntN(len(owned))]))
		awaitEnd(t, victim)
		w.forget(victim)
		testkit.Eventually(t, patience, "leases of the children", func() bool { return len(w.leases.Owners(t.Context())) == ranges+n+1 })
		w.settled()
	}
	r := testkit.Result{Fault: "F8", Name: "kill -9 of a relay while it splits a lease", Seed: seed, Injections: int64(splits), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}

// partition returns the id of the physical partition with a range of the data.
func (w *world) partition(of feedRange) string {
	w.t.Helper()
	resp, err := http.Get(w.controlURL("ranges"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Ranges []struct{ ID, MinInclusive, MaxExclusive string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range answer.Ranges {
		if r.MinInclusive+"-"+r.MaxExclusive == of.String() {
			return r.ID
		}
	}
	w.t.Fatalf("no partition has the range %s: %+v", of, answer.Ranges)
	return ""
}

// split divides a physical partition of the data in the middle.
func (w *world) split(id string) {
	w.t.Helper()
	resp, err := http.Post(w.controlURL("split"), "application/json", strings.NewReader(fmt.Sprintf(`{"range":%q}`, id)))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("split %s: %s", id, resp.Status)
	}
}

func (w *world) controlURL(request string) string {
	return strings.TrimSuffix(w.e.CosmosEndpoint, "/") + "/_emulator/dbs/" + w.e.Database + "/colls/" + w.e.Container + "/" + request
}
