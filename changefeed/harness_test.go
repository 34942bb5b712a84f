package changefeed_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// world is a container, a lease store and the hosts of one processor, inside a
// synctest bubble.
type world struct {
	t     *testing.T
	feed  *memfeed.Container
	store *memstore.Store
	got   *deliveries
}

func newWorld(t *testing.T, ranges int) *world {
	t.Helper()
	return &world{t: t, feed: memfeed.New(&memfeed.Options{Ranges: ranges}), store: memstore.New(nil), got: newDeliveries()}
}

// host is one running processor.
type host struct {
	*changefeed.Processor
	stop func() // drain and wait
	done chan error
}

// start runs a processor; handler nil records deliveries.
func (w *world) start(name string, handler changefeed.Handler, options *changefeed.Options) *host {
	w.t.Helper()
	var o changefeed.Options
	if options != nil {
		o = *options
	}
	o.Host = name
	if handler == nil {
		handler = w.got
	}
	p, err := changefeed.New(w.feed, w.store, handler, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	h := &host{Processor: p, done: make(chan error, 1)}
	go func() { h.done <- p.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-h.done; err != nil {
			w.t.Errorf("host %s: Run: %v", name, err)
		}
	})
	w.t.Cleanup(h.stop)
	return h
}

// put writes n documents over keys keys, one transaction each.
func (w *world) put(n, keys int) {
	for i := range n {
		w.feed.Put(memfeed.Document{Key: fmt.Sprintf("key-%d", i%keys), ID: fmt.Sprintf("doc-%d-%d", i, time.Now().UnixNano())})
	}
}

// leases lists the lease records.
func (w *world) leases() []changefeed.Lease {
	w.t.Helper()
	leases, err := changefeed.NewOperator(w.feed, w.store, nil).Leases(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return leases
}

// owners counts live leases by owner.
func (w *world) owners() map[string]int {
	owners := map[string]int{}
	for _, l := range w.leases() {
		if l.State == changefeed.LeaseLive {
			owners[l.Owner]++
		}
	}
	return owners
}

// deliveries records what handlers were given.
type deliveries struct {
	mu     sync.Mutex
	byKey  map[string][]int64 // LSNs in order of delivery
	total  int
	calls  int
	before func(ctx context.Context, b *changefeed.Batch) error
}

func newDeliveries() *deliveries { return &deliveries{byKey: map[string][]int64{}} }

func (d *deliveries) Handle(ctx context.Context, b *changefeed.Batch) error {
	if d.before != nil {
		if err := d.before(ctx, b); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	for i := range b.Items {
		d.total++
		d.byKey[string(b.Items[i].Key)] = append(d.byKey[string(b.Items[i].Key)], b.Items[i].LSN)
	}
	return nil
}

func (d *deliveries) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.total
}

// distinct counts different changes delivered.
func (d *deliveries) distinct() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, lsns := range d.byKey {
		sorted := slices.Clone(lsns)
		slices.Sort(sorted)
		n += len(slices.Compact(sorted))
	}
	return n
}

// ordered fails if a key's first deliveries are not in LSN order.
func (d *deliveries) ordered(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, lsns := range d.byKey {
		seen := map[int64]bool{}
		last := int64(0)
		for _, lsn := range lsns {
			if seen[lsn] {
				continue
			}
			seen[lsn] = true
			if lsn < last {
				t.Errorf("key %s: LSN %d first delivered after %d", key, lsn, last)
			}
			last = lsn
		}
	}
}

// eventually advances virtual time until the condition holds.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > within {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(began)
}
