//go:build faults

package crash

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// F4: both emulators, one process on a real disk, are killed with -9 under load and restarted, while
// API, relays and consumer keep running. No acknowledged change is lost.
func TestEmulatorsKilledUnderLoad(t *testing.T) {
	const full, openLimit = 100, 10 * time.Second
	kills := testkit.Count(t, full)
	seed := testkit.Seed(t, 4)
	flags := append([]string{"--data-dir", t.TempDir()}, fixedPorts(t)...)
	w := start(t, plan{seed: seed, relays: 2, contacts: 60, rate: 200, emulator: flags})

	var outages []outage
	var opened []time.Duration
	var duplicates int64 // counted by killed emulators
	for range kills {
		time.Sleep(time.Duration(w.rnd.IntN(500)) * time.Millisecond)
		everything := w.strikeAll()
		duplicates += w.e.DuplicatesDropped(t)
		w.dev.Kill()
		began := time.Now()
		w.dev, _ = testkit.StartDev(t, w.binaries, testkit.EmulatorPorts(flags...)...)
		opened = append(opened, time.Since(began))
		w.await(everything, patience)
		outages = append(outages, everything...)
	}
	r := testkit.Result{
		Fault: "F4", Name: "kill -9 of both emulators under 200 writes/s, opened again on their disk", Seed: seed, Injections: int64(kills), Of: full,
		Note: "takeover: until the first event of each range after the kill",
	}
	r.Recovery = w.finish(&r).Seconds()
	r.DuplicatesSent += duplicates
	r.TakeoverP50, r.TakeoverP99 = quantile(w.takeovers(outages), 0.5), quantile(w.takeovers(outages), 0.99)
	slices.Sort(opened)
	t.Logf("restart p50 %.2f s, longest %s; first event p50 %.2f s, p99 %.2f s; %d redeliveries",
		quantile(opened, 0.5), opened[len(opened)-1], r.TakeoverP50, r.TakeoverP99, w.consumer.Redelivered())
	if quantile(opened, 0.5) > openLimit.Seconds() {
		t.Errorf("restarted after %.2f s, want at most %s", quantile(opened, 0.5), openLimit)
	}
	w.drain()
	testkit.Record(t, r)
}

// fixedPorts returns flags with free ports, so that the emulators can be restarted at the same addresses.
func fixedPorts(t *testing.T) []string {
	t.Helper()
	ports := servers.Ports(t, 3)
	var flags []string
	for i, flag := range []string{"--cosmos", "--servicebus", "--servicebus-admin"} {
		flags = append(flags, flag, fmt.Sprint("127.0.0.1:", ports[i]))
	}
	return flags
}
