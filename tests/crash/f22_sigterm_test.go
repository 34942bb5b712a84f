//go:build faults

package crash

import (
	"context"
	"syscall"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F22: rolling restarts. A relay is told to end in the midst of its work; every
// second time it is told twice. It drains, releases its leases, ends with code 0, and
// others go on at once.
func TestRelayToldToEnd(t *testing.T) {
	const (
		full       = 100
		exitLimit  = 30 * time.Second
		startLimit = time.Second
	)
	times := testkit.Count(t, full)
	seed := testkit.Seed(t, 22)
	w := start(t, plan{seed: seed, relays: 3, contacts: 120, rate: 200, emulator: []string{"--ephemeral", "--partitions", "6"}})

	var outages []outage
	var slowest time.Duration
	for n := range times {
		w.balanced()
		time.Sleep(time.Duration(w.rnd.IntN(500)) * time.Millisecond)
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		ranges := w.owned(victim)
		told := time.Now()
		w.tell(victim)
		if n%2 == 1 {
			time.Sleep(time.Duration(w.rnd.IntN(10)) * time.Millisecond)
			w.tell(victim)
		}
		ctx, cancel := context.WithTimeout(t.Context(), exitLimit)
		code := victim.Wait(ctx)
		cancel()
		slowest = max(slowest, time.Since(told))
		if code != 0 {
			t.Errorf("restart %d: exit code %d, want 0", n, code)
		}
		for at, owner := range w.leases.Owners(t.Context()) {
			if owner == victim.Name {
				t.Errorf("restart %d: the lease of %s is not released", n, at)
			}
		}
		w.forget(victim)
		struck := w.strike(ranges)
		for i := range struck {
			struck[i].at = struck[i].at.Add(-inFlight) // it has ended: nothing is on the wire
		}
		w.await(struck, 20*time.Second)
		outages = append(outages, struck...)
		w.addRelay()
	}

	r := testkit.Result{Fault: "F22", Name: "SIGTERM, once or twice, under 200 writes/s", Seed: seed, Injections: int64(times), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	wantTakeover(t, w.takeovers(outages), startLimit, &r)
	t.Logf("slowest end %s", slowest)
	w.drain()
	testkit.Record(t, r)
}

// tell sends SIGTERM; a process that has ended cannot be told.
func (w *world) tell(p *testkit.Process) { _ = p.Signal(syscall.SIGTERM) }
