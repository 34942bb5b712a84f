package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/requests"
	"feedbox/tests/testenv"
)

func TestCrashedHostIsTakenOver(t *testing.T) {
	for range 20 { // each round has other times of the last renewals
		synctest.Test(t, crashAndTakeOver)
	}
}

func crashAndTakeOver(t *testing.T) {
	w := newWorld(t, 8)
	a := w.start("a", nil, nil)
	w.start("b", nil, nil)
	eventually(t, 10*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 4 && o["b"] == 4 })
	time.Sleep(3 * time.Minute) // the fleet is calm: cycles are slow
	a.crash()
	w.put(100, 20)
	took := eventually(t, 20*time.Second+7*time.Second, "b owns all", func() bool { return w.owners()["b"] == 8 })
	t.Logf("taken over after %s (Expiry 20 s, Acquire 5 s)", took)
	if took < 10*time.Second {
		t.Errorf("taken over after %s: too early for leases that may have been renewed just before", took)
	}
	// Host b may pause for PollMax in a range it had before.
	eventually(t, 25*time.Second, "delivered", func() bool { return w.got.distinct() == 100 })
	w.got.ordered(t)
}

// nameless is a feed that stops to answer which container it is of.
type nameless struct {
	changefeed.Feed
	silent atomic.Bool
	asked  atomic.Int64 // while it is silent
}

func (f *nameless) Source(ctx context.Context) (changefeed.Source, error) {
	if f.silent.Load() {
		f.asked.Add(1)
		<-ctx.Done()
		return changefeed.Source{}, context.Cause(ctx)
	}
	return f.Feed.Source(ctx)
}

// A takeover needs the lease store only. The feed is asked once each Expiry, because each question delays a cycle.
func TestTakeoverWaitsForNoFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		first := w.start("first", nil, nil)
		feed := &nameless{Feed: w.feed}
		stop := w.run(feed, w.got, &changefeed.Options{ReadTimeout: 5 * time.Minute})
		defer stop()
		eventually(t, 10*time.Second, "shared", func() bool { o := w.owners(); return o["first"] == 4 && o["a"] == 4 })
		time.Sleep(3 * time.Minute)
		feed.silent.Store(true)
		time.Sleep(5 * time.Minute)
		if n := feed.asked.Load(); n < 5 || n > 15 {
			t.Errorf("the feed was asked %d times in 5 minutes, want at most once each 20 s", n)
		}
		first.crash()
		eventually(t, (20+6+2*5+1)*time.Second, "the other host owns all", func() bool { return w.owners()["a"] == 8 })
	})
}

// A host that cannot reach the lease store stops before another host may have acquired its
// lease, and its handler's context ends in time.
func TestHostWithoutLeaseStoreFencesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var fenced, last atomic.Int64
		cause := make(chan error, 1)
		a := w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for began := time.Now(); ctx.Err() == nil && time.Since(began) < 5*time.Minute; { // a handler that does not end
				last.Store(time.Now().UnixNano())
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
			fenced.Store(time.Now().UnixNano())
			select {
			case cause <- context.Cause(ctx):
			default:
			}
			return ctx.Err()
		}), nil)
		eventually(t, 5*time.Second, "a owns the lease", func() bool { return w.owners()["a"] == 1 })
		w.put(1, 1)
		var taken atomic.Int64
		w.start("b", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseAcquired: func(changefeed.LeaseAcquired) { taken.Store(time.Now().UnixNano()) }}})
		time.Sleep(30 * time.Second)
		a.link.noStore.Store(true)
		eventually(t, time.Minute, "b delivers", func() bool { return w.got.count() == 1 })
		if fenced.Load() == 0 || fenced.Load() >= taken.Load() {
			t.Fatalf("a's handler was ended %s after b took the lease", time.Duration(fenced.Load()-taken.Load()))
		}
		t.Logf("a's handler ended %s before b took over", time.Duration(taken.Load()-fenced.Load()))
		if err := <-cause; !errors.Is(err, changefeed.ErrFenced) {
			t.Errorf("cause %v, want ErrFenced", err)
		}
		a.link.noStore.Store(false)
		eventually(t, 30*time.Second, "a is back", func() bool { return w.owners()["a"]+w.owners()["b"] == 1 })
	})
}

// A lease is taken over only after it was unchanged for its owner's expiry, which is in the
// record.
func TestShortExpiryDoesNotStealFromALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		a := w.start("a", nil, &changefeed.Options{Expiry: time.Minute})
		eventually(t, 5*time.Second, "a owns all", func() bool { return w.owners()["a"] == 2 })
		var lost atomic.Int32
		w.start("b", nil, &changefeed.Options{Expiry: 3 * time.Second, Observer: &changefeed.Observer{
			LeaseAcquired: func(e changefeed.LeaseAcquired) {
				if e.From != "" {
					lost.Add(1)
				}
			},
		}})
		time.Sleep(5 * time.Minute)
		if n := lost.Load(); n > 0 {
			t.Errorf("b took %d leases of a live owner", n)
		}
		a.crash()
	})
}

func TestDrainedLeasesAreTakenWithinASecond(t *testing.T) {
	for _, c := range []struct {
		calm        time.Duration
		ranges      int
		goes, stays string
	}{
		{20 * time.Second, 8, "a", "b"},
		{10 * time.Minute, 8, "a", "b"},
		{10 * time.Minute, 8, "b", "a"},
		{10 * time.Minute, 1, "a", "b"}, // b is spare
	} {
		t.Run(fmt.Sprintf("%s of %d ranges, %s of calm", c.goes, c.ranges, c.calm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.ranges)
				var mu sync.Mutex
				released, acquired := map[string]time.Time{}, map[string]time.Time{}
				note := func(at map[string]time.Time, lease string) {
					mu.Lock()
					defer mu.Unlock()
					at[lease] = time.Now()
				}
				o := &changefeed.Options{Observer: &changefeed.Observer{
					LeaseReleased: func(e changefeed.LeaseReleased) { note(released, e.Lease) },
					LeaseAcquired: func(e changefeed.LeaseAcquired) { note(acquired, e.Lease) },
				}}
				hosts := map[string]*host{"a": w.start("a", nil, o)}
				eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == c.ranges })
				hosts["b"] = w.start("b", nil, o)
				eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["b"] == c.ranges/2 })
				time.Sleep(c.calm)
				began := time.Now()
				hosts[c.goes].stop()
				if took := time.Since(began); took > 7*time.Second {
					t.Errorf("an idle host stopped in %s", took)
				}
				eventually(t, 10*time.Second, "taken", func() bool { return w.owners()[c.stays] == c.ranges })
				synctest.Wait() // a lease has its new owner before the observer is notified
				for lease, at := range acquired {
					if gap := at.Sub(released[lease]); !released[lease].Before(began) && gap > time.Second {
						t.Errorf("lease %s was unowned for %s", lease, gap)
					}
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 8 })
		time.Sleep(10 * time.Minute)
		a.stop()
		w.start("b", nil, nil)
		took := eventually(t, 10*time.Second, "b owns all", func() bool { return w.owners()["b"] == 8 })
		t.Logf("to a host that starts: after %s", took)
		if took > time.Second {
			t.Errorf("a starting host took over after %s", took)
		}
	})
}

// A wall clock that is set forward costs a redelivery of the batch in flight and a renewal,
// but not the lease. A suspension costs the lease before anything is sent.
func TestWallClockAheadOnlyCausesARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		var lost, calls atomic.Int32
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			calls.Add(1)
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			return ctx.Err()
		}
		w.start("a", nil, &changefeed.Options{
			Now:      func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			Observer: &changefeed.Observer{LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) }, LeaseReleased: func(changefeed.LeaseReleased) { lost.Add(1) }},
		})
		eventually(t, 5*time.Second, "a owns the lease", func() bool { return w.owners()["a"] == 1 })
		for range 10 {
			w.put(1, 1)
			eventually(t, 30*time.Second, "a call", func() bool { return calls.Load() > 0 })
			ahead.Add(int64(10 * time.Minute))
			time.Sleep(5 * time.Second)
			if n := calls.Swap(0); n != 2 {
				t.Errorf("%d calls, want the one in flight and one after a renewal", n)
			}
		}
		if n := w.got.count(); n != 10 {
			t.Errorf("%d deliveries, want 10", n)
		}
		if n := lost.Load(); n != 0 {
			t.Errorf("the lease changed hands %d times", n)
		}
	})
}

// Each remaining host acquires its share only. Handing a lease on is a rare exception, for
// a lease whose expected owner was late.
func TestLeasesOfCrashedHostAreShared(t *testing.T) {
	var passed atomic.Int32
	rounds := testenv.Sample(t, 4, 10)
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 12)
			var crashed atomic.Bool
			options := &changefeed.Options{Observer: &changefeed.Observer{LeaseReleased: func(changefeed.LeaseReleased) {
				if crashed.Load() {
					passed.Add(1)
				}
			}}}
			hosts := map[string]*host{}
			for _, name := range []string{"a", "b", "c"} {
				hosts[name] = w.start(name, nil, options)
			}
			eventually(t, time.Minute, "balanced", func() bool { n := w.owners(); return n["a"] == 4 && n["b"] == 4 && n["c"] == 4 })
			time.Sleep(10 * time.Minute)
			crashed.Store(true)
			hosts["b"].crash()
			eventually(t, 2*time.Minute, "shared", func() bool { n := w.owners(); return n["a"] == 6 && n["c"] == 6 })
			crashed.Store(false)
		})
	}
	if n := passed.Load(); n > int32(rounds/2) {
		t.Errorf("of %d leases %d were passed on", 4*rounds, n)
	}
}

// Spare hosts write nothing, take over free leases, and get leases as soon as there are
// enough.
func TestSpareHostsOnlyPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		hosts := map[string]*host{}
		for _, name := range []string{"a", "b", "c"} {
			hosts[name] = w.start(name, nil, nil)
		}
		owner := func() *host {
			for name, n := range w.owners() {
				if n > 0 && hosts[name] != nil {
					return hosts[name]
				}
			}
			return nil
		}
		eventually(t, 5*time.Second, "owned", func() bool { return owner() != nil })
		time.Sleep(5 * time.Minute)
		before := map[string]requests.Snapshot{}
		for name, h := range hosts {
			before[name] = h.Requests()
		}
		time.Sleep(10 * time.Minute)
		for name, h := range hosts {
			was, is := before[name], h.Requests()
			writes := is.LeaseCreates + is.LeaseReplaces + is.LeaseDeletes - was.LeaseCreates - was.LeaseReplaces - was.LeaseDeletes
			looks := is.LeaseLists - was.LeaseLists
			switch {
			case h == owner() && looks > 20:
				t.Errorf("the owner of everything listed %d times in 10 min, want once per 40 s", looks)
			case h != owner() && writes > 0:
				t.Errorf("spare host %s wrote %d times", name, writes)
			}
		}
		first := owner()
		first.crash()
		took := eventually(t, 27*time.Second, "taken over", func() bool { h := owner(); return h != nil && h != first })
		delete(hosts, first.name)
		t.Logf("a spare host took over after %s", took)
		time.Sleep(2 * time.Minute)
		w.put(10, 10)
		w.feed.Split(memfeed.EPK("key-1"))
		eventually(t, time.Minute, "shared", func() bool {
			n := w.owners()
			for name := range hosts {
				if n[name] != 1 {
					return false
				}
			}
			return len(w.leases()) == 2
		})
	})
}

// A handler detects by the epoch that another host has processed the range in between.
func TestEpochRisesWhenALeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var epochs []int64 // as handlers saw them, one for each change of it
		handler := changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if n := len(epochs); n == 0 || epochs[n-1] != b.Epoch {
				epochs = append(epochs, b.Epoch)
			}
			return nil
		})
		for round, name := range []string{"a", "b", "c"} {
			h := w.start(name, handler, nil)
			w.put(10, 5)
			eventually(t, time.Minute, "handled by "+name, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(epochs) == round+1 || len(epochs) > 0 && w.owners()[name] == 1
			})
			time.Sleep(time.Minute) // all is handled and checkpointed
			h.crash()
		}
		mu.Lock()
		defer mu.Unlock()
		if len(epochs) != 3 || epochs[0] >= epochs[1] || epochs[1] >= epochs[2] {
			t.Errorf("three owners, one after the other, handled under the epochs %v; want three that rise", epochs)
		}
	})
}

// The host does not wait for its next regular cycle.
func TestHostListsWhenALeaseExpires(t *testing.T) {
	for range 20 { // each round has other times of the host's cycles
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.start("a", nil, nil)
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
			w.start("b", nil, nil)
			time.Sleep(3 * time.Minute) // the fleet is calm
			a.crash()
			took := eventually(t, time.Minute, "taken", func() bool { return w.owners()["b"] == 1 })
			if most := 5*time.Second*12/10 + 20*time.Second + 200*time.Millisecond; took > most {
				t.Errorf("taken after %s, want at most one cycle and Expiry, %s", took, most)
			}
		})
	}
}

// An observer knows of an ownership before its first page is handled.
func TestLeaseAcquiredIsReportedBeforeTheFirstPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		var known atomic.Bool
		w.got.before = func(context.Context, *changefeed.Batch) error {
			if !known.Load() {
				t.Error("a page was handled before its lease was reported")
			}
			return nil
		}
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseAcquired: func(changefeed.LeaseAcquired) {
			time.Sleep(time.Second)
			known.Store(true)
		}}})
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 1 })
	})
}
