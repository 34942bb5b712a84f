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
	"feedbox/tests/testenv"
)

func TestPollingIsFastWhileActiveAndSlowWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var reads []time.Time
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{PageRead: func(changefeed.PageRead) {
			mu.Lock()
			defer mu.Unlock()
			reads = append(reads, time.Now())
		}}})
		since := func(d time.Duration) int {
			mu.Lock()
			defer mu.Unlock()
			n := 0
			for _, r := range reads {
				if time.Since(r) <= d {
					n++
				}
			}
			return n
		}
		w.put(1, 1)
		time.Sleep(50 * time.Second)
		if n := since(30 * time.Second); n < 48 || n > 76 {
			t.Errorf("%d reads in 30 s of a range that was active within a minute, want one each 500 ms", n)
		}
		time.Sleep(10 * time.Minute)
		if n := since(5 * time.Minute); n < 12 || n > 19 {
			t.Errorf("%d reads in 5 min of an idle range, want one each 20 s", n)
		}
		w.put(1, 1)
		eventually(t, 25*time.Second, "delivered", func() bool { return w.got.count() == 2 })
		time.Sleep(10 * time.Second)
		if n := since(5 * time.Second); n < 8 {
			t.Errorf("%d reads in 5 s after a change", n)
		}
	})
}

// A host that acquires hundreds of ranges would make 50,000 reads in the first second.
func TestReadsOfManyRangesShareThePollRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ranges, rate = 500, 1000
		w := newWorld(t, ranges)
		h := w.start("a", nil, &changefeed.Options{PollMin: 10 * time.Millisecond, PollMax: 5 * time.Second})
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == ranges })
		for range 5 {
			before := h.Requests().FeedReads
			time.Sleep(time.Second)
			if n := h.Requests().FeedReads - before; n > rate+ranges {
				t.Errorf("%d reads of %d ranges in a second, want at most %d", n, ranges, rate)
			}
		}
		w.put(ranges, ranges)
		time.Sleep(1500 * time.Millisecond)
		if n := w.got.count(); n != ranges {
			t.Errorf("%d of %d changes delivered within three turns of all ranges", n, ranges)
		}
		for range 30 { // each ends all pauses
			h.Wake()
			time.Sleep(10 * time.Millisecond)
		}
		w.put(ranges, ranges)
		time.Sleep(1500 * time.Millisecond)
		if n := w.got.count(); n != 2*ranges {
			t.Errorf("%d of %d changes delivered within three turns after many hints", n, 2*ranges)
		}
	})
}

func TestWakeReadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.feed = memfeed.New(&memfeed.Options{Ranges: 4, Before: func(ctx context.Context, _ changefeed.ReadRequest) error {
			return pause(ctx, time.Millisecond) // so that hints meet a read in progress
		}})
		h := w.start("a", nil, nil)
		h.Wake() // before it runs: no harm
		time.Sleep(10 * time.Minute)
		w.put(4, 4)
		h.Wake()
		time.Sleep(2 * time.Millisecond)
		if n := w.got.count(); n != 4 {
			t.Errorf("%d changes delivered right after Wake, want 4", n)
		}
		reads := h.Requests().FeedReads
		for range 1000 {
			h.Wake()
		}
		time.Sleep(100 * time.Millisecond)
		if n := h.Requests().FeedReads - reads; n > 8 {
			t.Errorf("%d reads for 1000 hints at once", n)
		}
	})
}

// The lease stays owned. A throttled feed is not read before its RetryAfter.
func TestFeedErrorsBackOffInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var reads []time.Time
		var fault error
		feed := memfeed.New(&memfeed.Options{Before: func(_ context.Context, req changefeed.ReadRequest) error {
			mu.Lock()
			defer mu.Unlock()
			if req.Range != (changefeed.FeedRange{}) && fault != nil {
				reads = append(reads, time.Now())
				return fault
			}
			return nil
		}})
		set := func(err error) int {
			mu.Lock()
			defer mu.Unlock()
			fault = err
			n := len(reads)
			reads = nil
			return n
		}
		w := newWorld(t, 1)
		w.feed = feed
		lost := 0
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			LeaseLost: func(changefeed.LeaseLost) { lost++ }, LeaseReleased: func(changefeed.LeaseReleased) { lost++ },
		}})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		set(errors.New("broken"))
		time.Sleep(10 * time.Minute)
		if n := set(nil); n < 20 || n > 40 {
			t.Errorf("%d reads in 10 min of failure, want the first ones quickly and then one each 30 s", n)
		}
		time.Sleep(time.Minute)
		set(&changefeed.ThrottledError{RetryAfter: 50 * time.Second, Err: errors.New("429")})
		time.Sleep(10 * time.Minute)
		if n := set(nil); n > 13 {
			t.Errorf("%d reads in 10 min, want none before the 50 s asked for", n)
		}
		w.put(10, 2)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 10 })
		if lost != 0 {
			t.Errorf("%d leases lost for a failing feed", lost)
		}
	})
}

// dotnetRequests returns the requests of an idle fleet with .NET's defaults: per lease a
// read every 5 s and a read and a write every 17 s, per host a query every 13 s. Its
// takeover takes 60 to 73 s.
func dotnetRequests(hosts, leases int, d time.Duration) float64 {
	s := d.Seconds()
	return float64(leases)*(s/5+2*s/17) + float64(hosts)*s/13
}

func TestIdleRequestsAreAThirdOfDotNets(t *testing.T) {
	for _, tt := range []struct{ hosts, leases int }{{1, 1}, {1, 4}, {2, 2}, {2, 8}, {2, 32}, {8, 8}, {3, 1}, {4, 100}}[:testenv.Sample(t, 7, 8)] {
		t.Run(fmt.Sprintf("%d hosts %d leases", tt.hosts, tt.leases), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, tt.leases)
				// For the same takeover time: a host that watches another's lease lists at
				// least every Expiry, so the lease is acquired at most 72 s after its last
				// write.
				o := &changefeed.Options{Expiry: 36 * time.Second, Acquire: 45 * time.Second, Renew: 20 * time.Second}
				var hosts []*host
				for i := range tt.hosts {
					hosts = append(hosts, w.start(fmt.Sprintf("h%d", i), nil, o))
				}
				time.Sleep(10 * time.Minute)
				total := func() (feed, store int64) {
					for _, h := range hosts {
						r := h.Requests()
						feed += r.FeedReads
						store += r.Leases()
					}
					return feed, store
				}
				feed0, store0 := total()
				time.Sleep(time.Hour)
				feed1, store1 := total()
				ours := float64(feed1 - feed0 + store1 - store0)
				dotnet := dotnetRequests(tt.hosts, tt.leases, time.Hour)
				t.Logf("%d hosts, %d leases, an idle hour: %.0f requests (%d feed, %d leases); .NET %.0f: %.1f times",
					tt.hosts, tt.leases, ours, feed1-feed0, store1-store0, dotnet, dotnet/ours)
				if dotnet < 3*ours {
					t.Errorf("%.2f times fewer requests, want 3", dotnet/ours)
				}
				owned, most := w.owners(), ""
				for i := range hosts {
					if name := hosts[i].name; owned[name] > owned[most] {
						most = name
					}
				}
				for _, h := range hosts {
					if tt.hosts > 1 && h.name == most {
						h.crash()
						took := eventually(t, 73*time.Second, "taken over", func() bool { return w.owners()[most] == 0 })
						t.Logf("%d leases taken over after %s (.NET: 60 to 73 s)", owned[most], took)
					}
				}
			})
		})
	}
}

// Four hosts own a thousand leases; four more join.
func TestBalanceOfAThousandLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		total := testenv.Sample(t, 160, 1000)
		w := newWorld(t, total)
		var mu sync.Mutex
		moves := map[string]int{}
		o := &changefeed.Options{PollMin: 5 * time.Second, Observer: &changefeed.Observer{LeaseAcquired: func(e changefeed.LeaseAcquired) {
			mu.Lock()
			defer mu.Unlock()
			moves[e.Lease]++
		}}}
		began := time.Now()
		for i := range 4 {
			w.start(fmt.Sprintf("h%d", i), nil, o)
		}
		balanced := func(n int) func() bool {
			return func() bool {
				owners := w.owners()
				for i := range n {
					if owners[fmt.Sprintf("h%d", i)] != total/n {
						return false
					}
				}
				return true
			}
		}
		eventually(t, time.Minute, "four hosts balanced", balanced(4))
		t.Logf("%d leases made and shared by 4 hosts after %s", total, time.Since(began))
		time.Sleep(70 * time.Second) // calm: cycles are slow
		mu.Lock()
		clear(moves)
		mu.Unlock()
		began = time.Now()
		for i := 4; i < 8; i++ {
			w.start(fmt.Sprintf("h%d", i), nil, o)
		}
		eventually(t, time.Minute, "eight hosts balanced", balanced(8))
		took := time.Since(began)
		t.Logf("%d leases, 4 hosts joined by 4: balanced after %s (.NET, 1,000 leases: about 1,625 s)", total, took)
		if took > 15*time.Second {
			t.Errorf("balanced after %s, want 15 s", took)
		}
		time.Sleep(15 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(moves) != total/2 {
			t.Errorf("%d leases moved, want %d", len(moves), total/2)
		}
		for lease, n := range moves {
			if n > 1 {
				t.Errorf("lease %s moved %d times", lease, n)
			}
		}
	})
}

// Once a range is caught up, reading ahead of busy lanes gains nothing. New changes are
// read at the next poll after a lane is idle.
func TestPollingWaitsForAnIdleLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reads atomic.Int32
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			if err := pause(ctx, 10*time.Second); err != nil {
				return err
			}
			return w.got.Handle(ctx, b)
		}), &changefeed.Options{
			Lanes: 2, PollMin: 10 * time.Millisecond,
			Observer: &changefeed.Observer{PageRead: func(changefeed.PageRead) { reads.Add(1) }},
		})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.put(40, 40)
		time.Sleep(time.Second)
		before := reads.Load()
		time.Sleep(8 * time.Second)
		if n := reads.Load() - before; n > 1 {
			t.Errorf("%d reads in 8 s in which both lanes worked", n)
		}
		w.put(1, 40)
		eventually(t, 15*time.Second, "delivered", func() bool { return w.got.distinct() == 41 })
	})
}

// Such a range is read about once per change, and at PollMin once changes stop.
func TestPollingFollowsTheRateOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var put []time.Time
		var waited time.Duration
		var reads int
		w.start("a", nil, &changefeed.Options{
			PollMin: 10 * time.Millisecond, PollBusy: time.Millisecond,
			Observer: &changefeed.Observer{
				PageRead: func(changefeed.PageRead) {
					mu.Lock()
					defer mu.Unlock()
					reads++
				},
				BatchHandled: func(e changefeed.BatchHandled) {
					mu.Lock()
					defer mu.Unlock()
					for range e.Items {
						waited += time.Since(put[0])
						put = put[1:]
					}
				},
			},
		})
		run := func(changes int, gap time.Duration) (mean time.Duration, readsPerChange float64) {
			mu.Lock()
			waited, reads = 0, 0
			mu.Unlock()
			for range changes {
				mu.Lock()
				put = append(put, time.Now())
				mu.Unlock()
				w.put(1, 1)
				time.Sleep(gap)
			}
			mu.Lock()
			defer mu.Unlock()
			return waited / time.Duration(changes), float64(reads) / float64(changes)
		}
		run(200, 4*time.Millisecond) // it finds the rate out
		if mean, reads := run(1000, 4*time.Millisecond); mean > 3500*time.Microsecond || reads > 1.5 {
			t.Errorf("changes 4 ms apart wait for %v and cost %.1f reads each, want some 2 ms and one read", mean, reads)
		}
		run(1, time.Second)
		if _, reads := run(1, 10*time.Second); reads > 1300 {
			t.Errorf("%.0f reads in 10 s without changes, want one each 10 ms", reads)
		}
	})
}

// A page that ends the feed is not followed by a read at once, however its items are divided among lanes.
func TestPageAtTheEndOfTheFeedIsFollowedByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var full time.Time
		pages, atOnce := 0, 0
		w.start("a", nil, &changefeed.Options{Lanes: 8, Observer: &changefeed.Observer{PageRead: func(e changefeed.PageRead) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e.Items > 0:
				full = time.Now()
				pages++
			case time.Now().Equal(full):
				atOnce++
			}
		}}})
		for n := range 20 {
			time.Sleep(7 * time.Microsecond) // reads and checks are at whole milliseconds, so no read sees a part of the changes
			w.put(40, 40)
			eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 40*(n+1) })
		}
		mu.Lock()
		defer mu.Unlock()
		if pages != 20 || atOnce > 0 {
			t.Errorf("%d reads at once after %d pages that ended the feed, want none after 20", atOnce, pages)
		}
	})
}
