//go:build faults

package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F8: a physical partition splits under load, and within a second a relay is killed with -9. Others
// complete the split, and no event is lost or out of order.
func TestRelayKilledDuringSplits(t *testing.T) {
	const full, ranges = 20, 3
	splits := testkit.Count(t, full)
	seed := testkit.Seed(t, 8)
	w := start(t, plan{seed: seed, relays: 3, contacts: 80, rate: 60, emulator: []string{"--ephemeral", "--partitions", fmt.Sprint(ranges)}})
	for range splits {
		all := w.partitions()
		w.split(all[w.rnd.IntN(len(all))])
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		victim.Kill()
		w.forget(victim)
		w.addRelay()
		w.settled()
	}
	testkit.Eventually(t, patience, "a lease for each range", func() bool { return len(w.leases.Owners(t.Context())) == ranges+splits })
	r := testkit.Result{Fault: "F8", Name: "kill -9 of a relay while a range is split", Seed: seed, Injections: int64(splits), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}

// partitions returns the ids of the physical partitions of the data.
func (w *world) partitions() (ids []string) {
	w.t.Helper()
	resp, err := http.Get(w.controlURL("ranges"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Ranges []struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range answer.Ranges {
		ids = append(ids, r.ID)
	}
	return ids
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
