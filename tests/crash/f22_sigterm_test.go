//go:build faults

package crash

import (
	"context"
	"syscall"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// F22: rolling restarts. A relay under load receives SIGTERM; every second time it receives it twice. It
// drains, releases its leases and exits with code 0, and others take over at once.
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
		signalled := time.Now()
		w.terminate(victim)
		if n%2 == 1 {
			time.Sleep(time.Duration(w.rnd.IntN(10)) * time.Millisecond)
			w.terminate(victim)
		}
		ctx, cancel := context.WithTimeout(t.Context(), exitLimit)
		code := victim.Wait(ctx)
		cancel()
		slowest = max(slowest, time.Since(signalled))
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
			struck[i].at = struck[i].at.Add(-inFlight) // the process has ended, so nothing is in flight
		}
		w.await(struck, patience)
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

// terminate sends SIGTERM. It ignores the error of a process that has ended.
func (w *world) terminate(p *testkit.Process) { _ = p.Signal(syscall.SIGTERM) }

// F22: database and broker are suspended, so that a relay that receives SIGTERM cannot drain. It exits
// within its drain timeout, and at once after a second SIGTERM. Either way it loses nothing.
func TestRelayToldToEndDuringAnOutage(t *testing.T) {
	const full = 10
	times := testkit.Count(t, full)
	seed := testkit.Seed(t, 23)
	w := start(t, plan{seed: seed, relays: 2, contacts: 80, rate: 100})
	for n := range times {
		w.balanced()
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		w.signal(w.dev, syscall.SIGSTOP)
		time.Sleep(100 * time.Millisecond)
		limit := 30 * time.Second
		if n%2 == 1 {
			limit = 3 * time.Second
		}
		signalled := time.Now()
		w.signal(victim, syscall.SIGTERM)
		if n%2 == 1 {
			time.Sleep(200 * time.Millisecond)
			w.signal(victim, syscall.SIGTERM)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		code := victim.Wait(ctx)
		cancel()
		t.Logf("round %d: ended after %s with code %d", n, time.Since(signalled).Round(time.Millisecond), code)
		if code == -1 && victim.Signalled() == syscall.SIGKILL {
			t.Errorf("round %d: the relay did not end within %s", n, limit)
		}
		w.signal(w.dev, syscall.SIGCONT)
		w.forget(victim)
		w.addRelay()
	}
	r := testkit.Result{Fault: "F22", Name: "SIGTERM, once or twice, while database and broker stand still", Seed: seed, Injections: int64(times), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}

func (w *world) signal(p *testkit.Process, s syscall.Signal) {
	w.t.Helper()
	if err := p.Signal(s); err != nil {
		w.t.Fatalf("signal %s to %s: %v", s, p.Name, err)
	}
}
