//go:build faults

package crash

import (
	"syscall"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// expiry is FEEDBOX_LEASE_EXPIRY of testkit.FastLeases.
const expiry = 3 * time.Second

// F10: a relay is suspended for twice the expiry of its leases, like a frozen machine, and resumes after
// another one has taken over its ranges. The broker drops what it sends then as duplicates.
func TestRelayPausedBeyondExpiry(t *testing.T) {
	const full, limit = 20, 5 * time.Second
	pauses := testkit.Count(t, full)
	seed := testkit.Seed(t, 10)
	w := start(t, plan{seed: seed, relays: 2, contacts: 120, rate: 200})
	var outages []outage
	for range pauses {
		w.balanced()
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		struck := w.strike(w.owned(victim))
		w.signal(victim, syscall.SIGSTOP)
		w.await(struck, 20*time.Second)
		time.Sleep(time.Until(struck[0].at.Add(2 * expiry)))
		w.signal(victim, syscall.SIGCONT)
		outages = append(outages, struck...)
	}
	r := testkit.Result{Fault: "F10", Name: "SIGSTOP of a relay for twice the expiry, inside the duplicate window", Seed: seed, Injections: int64(pauses), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	wantTakeover(t, w.takeovers(outages), limit, &r)
	w.drain()
	testkit.Record(t, r)
}

// F10: a relay is suspended for about the expiry of its leases. When it resumes, its trust has ended, but
// the others may not have taken over yet. It must not renew the leases then: another relay may acquire
// them at the same moment.
func TestRelayPausedForTheExpiry(t *testing.T) {
	const full = 60
	pauses := testkit.Count(t, full)
	seed := testkit.Seed(t, 101)
	w := start(t, plan{seed: seed, relays: 2, contacts: 120, rate: 200})
	for range pauses {
		w.balanced()
		time.Sleep(time.Duration(w.rnd.IntN(1000)) * time.Millisecond)
		victim := w.relays[w.rnd.IntN(len(w.relays))]
		w.signal(victim, syscall.SIGSTOP)
		time.Sleep(expiry*7/10 + time.Duration(w.rnd.Int64N(int64(expiry/2))))
		w.signal(victim, syscall.SIGCONT)
		w.settled()
	}
	r := testkit.Result{Fault: "F10", Name: "SIGSTOP of a relay for about the expiry", Seed: seed, Injections: int64(pauses), Of: full}
	r.Recovery = w.finish(&r).Seconds()
	w.drain()
	testkit.Record(t, r)
}
