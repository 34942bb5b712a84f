//go:build faults

package crash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F20: ten times the load, from 200 to 2,000 writes a second, open loop, with a tenth of it on one
// contact. The API stays fast or refuses requests, if the machine has enough idle processors for that
// load. The backlog is drained in time, and the relay's memory is bounded.
func TestBurst(t *testing.T) {
	const (
		full         = 60 // seconds
		contacts     = 10_000
		calm, burst  = 200, 2000
		latencyLimit = 250 * time.Millisecond
		drainLimit   = 3 * time.Minute
		memoryLimit  = 256 << 20
	)
	period := time.Duration(max(3, testkit.Count(t, full))) * time.Second
	sessions := max(200, testkit.Count(t, contacts))
	seed := testkit.Seed(t, 20)
	w := start(t, plan{seed: seed, relays: 2, contacts: 100, rate: calm, sessions: 32})
	w.stop() // the calm load; its changes stay in the history
	w.history.Add(w.load)

	// The contacts are created first and by a separate load, because the rate of a load
	// counts from its start.
	makeThem := &testkit.Workload{Base: w.base, Client: testkit.HTTPClient(t, 64), Contacts: sessions, Changes: sessions, Writers: 64, Seed: int64(seed)}
	if err := makeThem.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.history.Add(makeThem)
	ids, _, _ := makeThem.History()
	w.load = &testkit.Workload{
		Base: w.base, Client: testkit.HTTPClient(t, 128), Changes: int(period.Seconds() * burst), Writers: 128, Seed: int64(seed) + 1, Rate: burst,
		Existing: sortedKeys(ids), Hot: 10,
	}
	began := time.Now()
	all, idle := testkit.ProcessorTime()
	if err := w.load.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	allAfter, idleAfter := testkit.ProcessorTime()
	free := float64(idleAfter-idle) / float64(max(1, allAfter-all))
	latencies := w.load.Latencies()
	slices.Sort(latencies)
	r := testkit.Result{
		Fault: "F20", Name: "burst of 2,000 writes/s, ten times the load", Seed: seed, Injections: int64(period.Seconds()), Of: full,
	}
	var memory int64
	r.Recovery = w.finish(&r).Seconds()
	for _, relay := range w.relays {
		memory = max(memory, relay.PeakMemory(t))
	}
	t.Logf("%d changes in %s (%.0f/s), %d refused; p50 %.0f ms, p99 %.0f ms; backlog gone after %.1f s; relay at most %d MB",
		w.load.Done(), took.Round(time.Millisecond), float64(w.load.Done())/took.Seconds(), w.load.Refused(),
		quantile(latencies, 0.5)*1000, quantile(latencies, 0.99)*1000, r.Recovery, memory>>20)
	p99, rate := quantile(latencies, 0.99), float64(w.load.Done())/took.Seconds()
	r.Note = fmt.Sprintf("injections: seconds; %.0f writes/s came through on this machine, whose processors were idle for %.0f %%; p99 from when they were due %.0f ms, relay at most %d MB", rate, free*100, p99*1000, memory>>20)
	switch {
	case period < 30*time.Second || rate < 0.9*burst || allAfter > all && free < 0.1: // one pause is the p99 of a short load
		t.Logf("LATENCY NOT JUDGED: p99 %.0f ms; all processes together do %.0f of %d writes/s on this machine, with processors idle for %.0f %%", p99*1000, rate, burst, free*100)
	case p99 > latencyLimit.Seconds():
		t.Errorf("p99 of the API is %.0f ms, want at most %s", p99*1000, latencyLimit)
	}
	if r.Recovery > drainLimit.Seconds() {
		t.Errorf("the backlog was gone after %.0f s, want at most %s", r.Recovery, drainLimit)
	}
	if memory > memoryLimit {
		t.Errorf("a relay took %d MB, want at most %d", memory>>20, memoryLimit>>20)
	}
	w.drain()
	testkit.Record(t, r)
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
