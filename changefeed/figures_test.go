package changefeed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/record"
	"feedbox/tests/testenv"
)

// cyclesOf returns the number of restarts, crashes or splits in a test that reports
// figures: CHANGEFEED_CYCLES.
func cyclesOf(t *testing.T) int {
	t.Helper()
	return testenv.Count(t, "CHANGEFEED_CYCLES", testenv.Sample(t, 2, 5))
}

// seeded returns the random choices of a test that reports figures, from CHANGEFEED_SEED. The
// jitter of the hosts' pauses does not follow from it.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := testenv.Seed(t, "CHANGEFEED_SEED", 1)
	t.Logf("CHANGEFEED_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestTakeoverTimes measures how long a range has no owner after its host is gone: from the
// crash, or from its release, until another host owns it.
func TestTakeoverTimes(t *testing.T) {
	for _, kind := range []string{"crash", "stop"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				rng := seeded(t)
				f := newFleet(t, 16, 4, 50, changefeed.Options{})
				var all []time.Duration
				for i := range cyclesOf(t) {
					time.Sleep(time.Duration(rng.IntN(10_000)) * time.Millisecond)
					if i%2 == 0 {
						time.Sleep(70 * time.Second) // nothing changes: hosts list every 5 s
					}
					h := f.pick(i)
					leases := f.of(h.name)
					at := time.Now()
					if kind == "crash" {
						h.crash()
					} else {
						go h.stop()
					}
					all = append(all, f.taken(leases, at, 40*time.Second)...)
					f.join()
					f.balanced(time.Minute)
				}
				f.settle()
				p50, p99, most := quantile(all, 0.5), quantile(all, 0.99), all[len(all)-1]
				t.Logf("%s: %d leases changed hands: p50 %s, p99 %s, most %s", kind, len(all), p50, p99, most)
				// A renewal is seen up to a jittered Acquire, and the least pause of two listings, after it was written.
				limit := map[string]time.Duration{"crash": 20*time.Second + 6200*time.Millisecond, "stop": 1500 * time.Millisecond}[kind]
				if most > limit {
					t.Errorf("a lease had no owner for %s, want at most %s", most, limit)
				}
				record.Write(t, record.Result{
					Fault: "F9", Name: "takeover after a " + kind, Injections: int64(cyclesOf(t)), Of: 200, Events: int64(f.written),
					DuplicatesSent: int64(f.again()), TakeoverP50: p50.Seconds(), TakeoverP99: p99.Seconds(), Simulated: time.Since(began).Hours(),
					Note: "Expiry 20 s, Acquire 5 s; 16 ranges, 4 hosts, 50 changes/s",
				})
			})
		})
	}
}

// After a crash at most the changes handled after the last checkpoint are redelivered, else
// none.
func TestRedeliveriesUnderLoad(t *testing.T) {
	kinds := map[string]func(f *fleet, i int) (most int){
		"crash": func(f *fleet, i int) int {
			h := f.pick(i)
			h.crash()
			time.Sleep(time.Second) // handlers that had begun end
			f.join()
			return f.unsaved(h.name)
		},
		"restart":   func(f *fleet, i int) int { h := f.pick(i); h.stop(); f.join(); return 0 },
		"rebalance": func(f *fleet, i int) int { f.join(); f.balanced(time.Minute); f.pick(i).stop(); return 0 },
		"split":     func(f *fleet, i int) int { f.feed.Split(memfeed.EPK(fmt.Sprintf("key-%d", i))); return 0 },
	}
	for kind, change := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				rng := seeded(t)
				f := newFleet(t, 4, 3, 200, changefeed.Options{Lanes: 4, MaxItems: 20})
				most := 0
				for i := range cyclesOf(t) {
					time.Sleep(time.Duration(2000+rng.IntN(5000)) * time.Millisecond)
					most += change(f, i)
					f.balanced(time.Minute)
				}
				f.settle()
				again := f.again()
				t.Logf("%d times a %s under 200 changes/s: %d of %d changes delivered again; handled and not checkpointed were %d",
					cyclesOf(t), kind, again, f.written, most)
				if again > most {
					t.Errorf("%d delivered again, want at most %d", again, most)
				}
				record.Write(t, record.Result{
					Fault: "F8", Name: "a " + kind + " under load", Injections: int64(cyclesOf(t)), Of: 200, Events: int64(f.written),
					DuplicatesSent: int64(again), Simulated: time.Since(began).Hours(),
					Note: fmt.Sprintf("handled and not checkpointed at that moment: %d", most),
				})
			})
		})
	}
}

// F9: hosts are replaced every two seconds, for CHANGEFEED_CYCLES minutes.
func TestChurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		rng := seeded(t)
		f := newFleet(t, 8, 4, 100, changefeed.Options{})
		n := 0
		for ; n < 30*min(cyclesOf(t), 5); n++ {
			time.Sleep(2 * time.Second)
			go f.pick(rng.IntN(len(f.hosts))).stop()
			f.join()
		}
		took := f.balanced(30 * time.Second)
		f.settle()
		t.Logf("%d hosts replaced, 2 s apart: balanced %s after the last; %d of %d changes delivered again", n, took, f.again(), f.written)
		if took > 10*time.Second || f.again() > 0 {
			t.Errorf("balanced %s after the last, %d changes delivered again; want 10 s and none", took, f.again())
		}
		record.Write(t, record.Result{
			Fault: "F9", Name: "hosts replaced every 2 s", Injections: int64(n), Of: 150, Events: int64(f.written),
			DuplicatesSent: int64(f.again()), Recovery: took.Seconds(), Simulated: time.Since(began).Hours(),
		})
	})
}

// F11: the wall clocks of hosts with drifting clocks are set forward and back, by up to ten
// minutes. No lease changes its owner.
func TestWallClocksJump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		rng := seeded(t)
		f := newFleet(t, 8, 4, 100, changefeed.Options{})
		f.mu.Lock()
		moved := f.moved
		f.mu.Unlock()
		jumps := 0
		for ; time.Since(began) < time.Duration(min(cyclesOf(t), 10))*time.Minute; jumps++ {
			time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
			f.walls[jumps%4].Store(int64(rng.IntN(1200)-600) * int64(time.Second))
		}
		f.settle()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.lost > 0 || f.moved > moved {
			t.Errorf("%d leases lost, %d acquired again", f.lost, f.moved-moved)
		}
		if n := f.again(); n > 0 {
			t.Errorf("%d changes delivered again", n)
		}
		record.Write(t, record.Result{
			Fault: "F11", Name: "wall clocks jump by up to 10 min", Injections: int64(jumps), Of: int64(jumps), Events: int64(f.written),
			DuplicatesSent: int64(f.again()), Simulated: time.Since(began).Hours(), Note: "no lease changed hands",
		})
	})
}
