package changefeed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/operator/plan"
	"feedbox/tests/testenv"
)

// scaleFleet is a fleet of real processors on counters instead of documents.
type scaleFleet struct {
	t       *testing.T
	rng     *rand.Rand
	stores  []*costedStore // one for each scope
	feed    *counterFeed
	hosts   []*scaleHost
	ended   []*scaleHost
	started int
	p99     time.Duration // of the lags of the last phase

	mu    sync.Mutex // guards the fields below
	owner map[string]string
	held  map[string]int
	moves int
	lags  []time.Duration // of changes when they were handled
}

type scaleHost struct {
	name   string
	region int // of regions
	cut    atomic.Bool
	end    context.CancelFunc
	done   chan error
}

const regions = 3

// newScaleFleet returns a fleet without hosts. Each of its scopes has leases of its own, as if it were
// the only one: nobody lists those of another processor.
func newScaleFleet(t *testing.T, ranges int, rate float64, scopes int) *scaleFleet {
	f := &scaleFleet{t: t, rng: seeded(t), owner: map[string]string{}, held: map[string]int{}}
	for range scopes {
		f.stores = append(f.stores, newCostedStore())
	}
	f.feed = newCounterFeed(ranges, rate, f.stores[0])
	return f
}

// scope returns the part of the container whose hosts share its leases.
func (f *scaleFleet) scope(n int) []changefeed.FeedRange {
	f.feed.mu.Lock()
	defer f.feed.mu.Unlock()
	each := len(f.feed.parts) / len(f.stores)
	if each*len(f.stores) != len(f.feed.parts) {
		f.t.Fatalf("%d ranges cannot be divided into %d scopes", len(f.feed.parts), len(f.stores))
	}
	return []changefeed.FeedRange{{Min: f.feed.parts[n*each].Min, Max: f.feed.parts[(n+1)*each-1].Max}}
}

// start starts n hosts at random moments within a time.
func (f *scaleFleet) start(n int, within time.Duration) {
	f.t.Helper()
	var at []time.Duration
	for range n {
		at = append(at, time.Duration(f.rng.Int64N(int64(within))))
	}
	slices.Sort(at)
	began := time.Now()
	for _, moment := range at {
		time.Sleep(moment - time.Since(began))
		f.started++
		h := &scaleHost{name: fmt.Sprintf("h%d", f.started), region: f.started % regions, done: make(chan error, 1)}
		f.mu.Lock()
		f.held[h.name] = 0
		f.mu.Unlock()
		scope := (f.started - 1) % len(f.stores)
		p, err := changefeed.New(f.feed, cutStore{f.stores[scope], &h.cut}, changefeed.HandlerFunc(f.handle),
			&changefeed.Options{Host: h.name, Scope: f.scope(scope), DrainTimeout: -1, Observer: &changefeed.Observer{
				LeaseAcquired: func(e changefeed.LeaseAcquired) { f.note(e.Lease, h.name, true) },
				LeaseReleased: func(e changefeed.LeaseReleased) { f.note(e.Lease, h.name, false) },
				LeaseLost:     func(e changefeed.LeaseLost) { f.note(e.Lease, h.name, false) },
				RangeSplit:    func(e changefeed.RangeSplit) { f.note(e.Lease, h.name, false) },
			}})
		if err != nil {
			f.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		h.end = cancel
		f.hosts = append(f.hosts, h)
		go func() { h.done <- p.Run(ctx) }()
	}
}

// handle records how old each change is.
func (f *scaleFleet) handle(_ context.Context, batch *changefeed.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range batch.Items {
		if age, ok := f.feed.age(batch.Range.Min, batch.Items[i].LSN); ok {
			f.lags = append(f.lags, age)
		}
	}
	return nil
}

// note records that a host owns a lease, or does not own it any more.
func (f *scaleFleet) note(lease, host string, owns bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, owned := f.owner[lease]
	if _, alive := f.held[host]; !alive || !owns && before != host {
		return
	}
	if owned {
		f.held[before]--
		delete(f.owner, lease)
	}
	if owns {
		f.owner[lease] = host
		f.held[host]++
		f.moves++
	}
}

// crash ends hosts at once.
func (f *scaleFleet) crash(gone []*scaleHost) {
	gone = slices.Clone(gone)
	f.mu.Lock()
	for _, h := range gone {
		h.cut.Store(true)
		h.end()
		delete(f.held, h.name)
	}
	for lease, host := range f.owner {
		if _, alive := f.held[host]; !alive {
			delete(f.owner, lease)
		}
	}
	f.mu.Unlock()
	f.ended = append(f.ended, gone...)
	f.hosts = slices.DeleteFunc(f.hosts, func(h *scaleHost) bool { return slices.Contains(gone, h) })
}

// in returns the hosts of a region.
func (f *scaleFleet) in(region int) (hosts []*scaleHost) {
	for _, h := range f.hosts {
		if h.region == region {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// end ends all hosts and waits for them.
func (f *scaleFleet) end() {
	f.crash(f.hosts)
	for _, h := range f.ended {
		if err := <-h.done; err != nil {
			f.t.Errorf("host %s: Run: %v", h.name, err)
		}
	}
}

func (f *scaleFleet) balanced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.feed.mu.Lock()
	leases := len(f.feed.parts)
	f.feed.mu.Unlock()
	low, high := leases, 0
	for _, n := range f.held {
		low, high = min(low, n), max(high, n)
	}
	return len(f.owner) == leases && high-low <= 1
}

// phase runs a change of the fleet and waits until it is balanced, for at most within. It reports
// the figures of SCALE_PHASE, or of the wait if that was longer.
func (f *scaleFleet) phase(name string, within time.Duration, change func()) (took time.Duration, cost charges) {
	f.t.Helper()
	began, before := time.Now(), f.costs()
	f.mu.Lock()
	f.moves, f.lags = 0, nil
	f.mu.Unlock()
	change()
	if within > 0 {
		took = eventually(f.t, within, name+": balanced", f.balanced)
	}
	time.Sleep(testenv.Duration(f.t, "SCALE_PHASE", 10*time.Second) - time.Since(began))
	seconds := time.Since(began).Seconds()
	cost = f.costs().since(before)
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts := float64(len(f.hosts))
	f.t.Logf("%s: %d ranges, %d hosts, balanced after %.1f s, %d moves, %.0f writes refused; each second %.1f listings, %.0f rows, %.0f KB listed by a host, %.0f RU listings, %.0f RU writes, %.0f RU polls; at most %.0f RU of leases in one second",
		name, len(f.owner), len(f.hosts), took.Seconds(), f.moves, cost.Conflicts, cost.Looks/seconds, cost.Rows/seconds, cost.Bytes/1024/hosts/seconds,
		cost.LookRU/seconds, cost.WriteRU/seconds, cost.PollRU/seconds, cost.Peak)
	if n := len(f.lags); n > 0 {
		slices.Sort(f.lags)
		f.p99 = f.lags[n*99/100]
		f.t.Logf("%s: %d changes, lag p50 %s, p99 %s, at most %s; %.0f of %.0f reads throttled",
			name, n, f.lags[n/2].Round(time.Millisecond), f.p99.Round(time.Millisecond), f.lags[n-1].Round(time.Millisecond), cost.Throttled, cost.Polls)
	}
	return took, cost
}

// memory returns the bytes in use.
func memory() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

func (f *scaleFleet) costs() charges {
	total := f.stores[0].costs()
	for _, s := range f.stores[1:] {
		total = total.plus(s.costs())
	}
	return total
}

// TestScale measures a fleet of SCALE_RANGES ranges and SCALE_HOSTS hosts in virtual time; make
// scale has the sizes. The time of requests is that of costedStore, and its charges are a model.
func TestScale(t *testing.T) {
	ranges, hosts, scopes := testenv.Count(t, "SCALE_RANGES", 40), testenv.Count(t, "SCALE_HOSTS", 10), testenv.Count(t, "SCALE_SCOPES", 1)
	const rate = 2 // changes a second and range: each range then writes its checkpoint every second, as at any higher rate
	synctest.Test(t, func(t *testing.T) {
		empty := memory()
		f := newScaleFleet(t, ranges, 0, scopes)
		f.phase("cold start without leases", time.Minute, func() { f.start(hosts, time.Second) })
		join := hosts / 10 / scopes * scopes // as many in each scope
		took, _ := f.phase(fmt.Sprintf("%d hosts join in 10 s", join), time.Minute, func() { f.start(join, 10*time.Second) })
		if took > 30*time.Second {
			t.Errorf("balanced %s after the last join, want 30 s", took)
		}
		if due := ranges * join / len(f.hosts); f.moves > due+join {
			t.Errorf("%d moves, want the %d of the new hosts' share", f.moves, due)
		}
		f.phase("idle", 0, func() {})
		used := memory() - empty
		t.Logf("memory: %.0f KB a range, %.0f KB a host, %.0f bytes a host and lease", used/1024/float64(ranges), used/1024/float64(len(f.hosts)), used/float64(ranges*len(f.hosts)))
		f.feed.grow(rate*float64(ranges), 2*rate)
		began := time.Now()
		_, cost := f.phase("under load", 0, func() {})
		_, write := plan.Charge(1024)
		share := cost.lease() / time.Since(began).Seconds() / (1000 * write * float64(ranges))
		t.Logf("leases take %.3f %% of the RU of 1,000 writes/s a range", 100*share)
		if share > 0.02 {
			t.Errorf("leases take %.1f %% of the RU of 1,000 writes/s a range, want at most 2 %%", 100*share)
		}
		f.feed.throttle(1)
		f.phase("under load, each range throttled to a read a second", 0, func() {})
		if f.p99 == 0 || f.p99 > 3*time.Second {
			t.Errorf("p99 lag %s with throttled ranges, want at most 3 s", f.p99)
		}
		f.phase("a region of three is gone, under load, throttled", time.Minute, func() { f.crash(f.in(0)) })
		f.phase("all crash and return, under load, throttled", time.Minute, func() {
			gone := len(f.hosts)
			f.crash(f.hosts)
			f.start(gone, time.Second)
		})
		f.feed.grow(0, 1)
		f.end()
	})
}

// Ranges split while the load grows a hundredfold within SCALE_GROWTH.
func TestScaleGrowth(t *testing.T) {
	ranges, hosts := testenv.Count(t, "SCALE_RANGES", 40), testenv.Count(t, "SCALE_HOSTS", 10)
	growth := testenv.Duration(t, "SCALE_GROWTH", time.Minute)
	synctest.Test(t, func(t *testing.T) {
		const steps, most = 20, 1.0 // changes a second that a range can serve
		f := newScaleFleet(t, max(1, ranges/100), most, 1)
		f.phase("cold start without leases", time.Minute, func() { f.start(hosts, time.Second) })
		took, _ := f.phase("load grows a hundredfold", time.Minute, func() {
			load := most * float64(len(f.feed.parts))
			for step := range steps {
				time.Sleep(growth / steps)
				f.feed.grow(load*math.Pow(100, float64(step+1)/steps), most)
			}
		})
		if took > 30*time.Second {
			t.Errorf("balanced %s after the last split, want 30 s", took)
		}
		if n := len(f.feed.parts); n < 50*max(1, ranges/100) {
			t.Errorf("%d ranges after the growth; the others did not split", n)
		}
		f.end()
	})
}
