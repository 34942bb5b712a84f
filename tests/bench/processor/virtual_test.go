package processor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/bench/measure"
	"feedbox/tests/testenv"
)

// calm is the time after a change until hosts read the leases at the slow interval.
const calm = 70 * time.Second

// .NET's defaults, from its code. Per lease: a read of the feed every 5 s, a read and a
// write of the record every 17 s. Per host: a query every 13 s, which acquires one lease more
// than the host has lost. A lease is taken over 60 to 73 s after its last write.
const (
	dotnetPoll, dotnetRenew, dotnetQuery = 5, 17, 13
	dotnetExpiry                         = 60
)

func dotnetRequests(hosts, leases int, d time.Duration) float64 {
	s := d.Seconds()
	return float64(leases)*(s/dotnetPoll+2*s/dotnetRenew) + float64(hosts)*s/dotnetQuery
}

// TestVirtualBalance: four hosts with 1,000 leases are stable. Four more join just after one
// of the four has read the leases, which is the worst moment.
func TestVirtualBalance(t *testing.T) {
	t.Parallel()
	leases, rounds := 1000, 2
	if !full() {
		leases, rounds = 40, 1
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, leases)
		looked := make(chan struct{}, 1)
		o := changefeed.Options{PollMin: 5 * time.Second, Observer: &changefeed.Observer{Balanced: func(changefeed.Balanced) {
			select {
			case looked <- struct{}{}:
			default:
			}
		}}}
		for range 4 {
			w.join(o, nil)
		}
		w.balanced(leases)
		var took []time.Duration
		var moved, more int
		for range rounds {
			time.Sleep(calm)
			w.moved.mu.Lock()
			clear(w.moved.count)
			w.moved.mu.Unlock()
			old := w.names()
			select {
			case <-looked:
			default:
			}
			<-looked
			for range 4 {
				w.join(o, nil)
			}
			took = append(took, w.balanced(leases))
			time.Sleep(15 * time.Second)
			w.moved.mu.Lock()
			for _, n := range w.moved.count {
				moved++
				more = max(more, n)
			}
			w.moved.mu.Unlock()
			for _, name := range old {
				w.leave(name, false)
			}
			time.Sleep(time.Second)
			w.balanced(leases)
		}
		w.end()
		// Each new host acquires one lease per query.
		dotnet := float64(leases/8) * dotnetQuery
		tell(t,
			measure.Cost(fmt.Sprintf("balancing %d leases, 4 hosts joined by 4", leases), quantile(took, 1), "s simulated").
				Over(dotnet).Wants(measure.AtMost(15)).Noting("the slower of %d, joined at the worst moment; .NET computed", rounds),
			measure.Cost("leases moved for it", float64(moved)/float64(rounds), "leases").Over(float64(leases/2)).
				Wants(measure.RatioAtMost(1)).Noting("the least possible; no lease moved more than %d times", more),
		)
	})
}

// TestVirtualTakeover: one of four stable hosts crashes or stops.
func TestVirtualTakeover(t *testing.T) {
	t.Parallel()
	const leases = 16
	times := 100
	if !full() {
		times = 3
	}
	for _, crash := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, leases)
			for range 4 {
				w.join(changefeed.Options{}, nil)
			}
			w.balanced(leases)
			all := takeovers(w, changefeed.Options{}, leases, times, crash)
			w.end()
			name, goal, note := "takeover after a crash", 25.0, "expiry 20 s, a look each 5 s; %d leases; .NET: 60 to 73 s after the last write"
			if !crash {
				name, goal, note = "takeover after a stop in calm", 1.0, "from the release on; %d leases; .NET releases, too, and queries each 13 s"
			}
			tell(t,
				measure.Cost(name+", p50", quantile(all, 0.5), "s simulated").Noting(note, len(all)),
				measure.Cost(name+", p99", quantile(all, 0.99), "s simulated").Wants(measure.AtMost(goal)),
			)
		})
	}
}

// takeovers repeatedly stops or crashes a host in a stable fleet and starts another one.
func takeovers(w *world, o changefeed.Options, leases, times int, crash bool) (all []time.Duration) {
	seed := testenv.Seed(w.t, "CHANGEFEED_SEED", rand.Uint64())
	w.t.Logf("seed %d (CHANGEFEED_SEED=%d repeats it)", seed, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range times {
		time.Sleep(calm + time.Duration(rnd.Int64N(int64(30*time.Second))))
		owners := slices.DeleteFunc(w.names(), func(name string) bool { return len(w.moved.of(name)) == 0 })
		gone := owners[rnd.IntN(len(owners))]
		lost := w.moved.of(gone)
		began := time.Now()
		w.leave(gone, crash)
		all = append(all, w.taken(lost, gone, began)...)
		w.join(o, nil)
		w.balanced(leases)
	}
	return all
}

// idle is a fleet in which nothing changes.
var idle = []struct {
	name          string
	hosts, leases int
}{
	{"1 host, 1 lease", 1, 1},
	{"2 hosts, 1 lease each", 2, 2},
	{"8 hosts, 1 lease each", 8, 8},
	{"1 host, 4 leases", 1, 4},
	{"4 hosts, 4 leases each", 4, 16},
	{"4 hosts, 16 leases each", 4, 64},
	{"3 hosts, 1 lease: two own nothing", 3, 1},
	{"8 hosts, 1 lease: seven own nothing", 8, 1},
}

// idleOptions have the takeover time of .NET: a host reads another host's lease at least once
// per Expiry, so that it takes the lease over at most 73 s after its last write.
var idleOptions = changefeed.Options{Expiry: 36500 * time.Millisecond, Acquire: 45 * time.Second, Renew: 20 * time.Second}

// TestVirtualIdle counts the requests of an hour.
func TestVirtualIdle(t *testing.T) {
	t.Parallel()
	for i, fleet := range idle {
		times := 12
		if !full() {
			times = 1
		}
		if !asked() && i%3 != 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, fleet.leases)
			for range fleet.hosts {
				w.join(idleOptions, nil)
			}
			time.Sleep(10 * time.Minute)
			count := func() (n int64) {
				for _, h := range w.hosts {
					n += h.Requests().Total()
				}
				return n
			}
			before := count()
			time.Sleep(time.Hour)
			ours, dotnet := float64(count()-before), dotnetRequests(fleet.hosts, fleet.leases, time.Hour)
			note := "no other host to take over"
			if fleet.hosts > 1 {
				note = fmt.Sprintf("takeover at most %.0f s", quantile(takeovers(w, idleOptions, fleet.leases, times, true), 1))
			}
			w.end()
			share := float64(fleet.leases) * 60
			tell(t, measure.Cost("idle, "+fleet.name, ours/share, "requests/lease/min").Over(dotnet/share).
				Wants(measure.RatioAtMost(1.0/3)).Noting("%.1f times fewer than .NET's defaults; %s", dotnet/ours, note))
		})
	}
}

// TestVirtualLanes: one range, 1,000 keys, 5 ms a document, in order.
func TestVirtualLanes(t *testing.T) {
	t.Parallel()
	documents, rounds := 20_000, 5
	if !full() {
		documents, rounds = 2000, 1
	}
	rate := func(lanes int) float64 {
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			for i := range documents {
				w.feed.Put(memfeed.Document{Key: fmt.Sprint("key-", i%1000), ID: fmt.Sprint(i)})
			}
			var order sync.Mutex
			last := map[string]int64{}
			var handled atomic.Int64
			began := time.Now()
			w.join(changefeed.Options{Lanes: lanes, MaxItems: 1000, ReadAheadItems: 20_000}, changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
				time.Sleep(time.Duration(len(b.Items)) * 5 * time.Millisecond)
				order.Lock()
				defer order.Unlock()
				for i := range b.Items {
					key, lsn := string(b.Items[i].Key), b.Items[i].LSN
					if lsn <= last[key] {
						t.Errorf("key %s: %d after %d", key, lsn, last[key])
					}
					last[key] = lsn
				}
				handled.Add(int64(len(b.Items)))
				return nil
			}))
			w.until(time.Hour, "handled", func() bool { return handled.Load() == int64(documents) })
			took = time.Since(began)
			w.end()
		})
		return float64(documents) / took.Seconds()
	}
	middle := func(lanes int) float64 {
		var all []time.Duration
		for range rounds {
			all = append(all, time.Duration(float64(time.Second)*rate(lanes)))
		}
		return quantile(all, 0.5)
	}
	serial, lanes := middle(1), middle(128)
	tell(t, measure.Rate("128 lanes beside one: 5 ms a document, 1 range, 1,000 keys", lanes, "documents/s simulated").Over(serial).
		Wants(measure.RatioAtLeast(50)).Noting("in order"))
}
