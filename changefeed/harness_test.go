package changefeed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/requests"
	"feedbox/tests/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// world is a container, a lease store and the hosts of one processor, inside a synctest
// bubble.
type world struct {
	t     *testing.T
	feed  *memfeed.Container
	store *memstore.Store
	got   *deliveries
	docs  atomic.Int64
}

func newWorld(t *testing.T, ranges int) *world {
	t.Helper()
	return &world{t: t, feed: memfeed.New(&memfeed.Options{Ranges: ranges}), store: memstore.New(nil), got: newDeliveries()}
}

// host is one running processor.
type host struct {
	*changefeed.Processor
	requests.Counts
	name string
	stop func() // drain and wait
	end  context.CancelFunc
	done chan error
	link *link
}

// link is a host's connection to the feed and the store.
type link struct {
	t *testing.T
	changefeed.Feed
	changefeed.LeaseStore
	crashed atomic.Bool // nothing works any more
	noStore atomic.Bool // the lease store cannot be reached
	denied  atomic.Bool // the lease store says no, for good
}

var errCut = errors.New("cannot be reached")

func (l *link) store() error {
	switch {
	case l.crashed.Load() || l.noStore.Load():
		return errCut
	case l.denied.Load():
		return fmt.Errorf("access denied: %w", changefeed.ErrPermanent)
	}
	return nil
}

// linkFeed and linkStore exist because both interfaces have a Read.
type linkFeed struct{ *link }

func (l linkFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if l.crashed.Load() {
		return nil, errCut
	}
	if req.Continuation != "" && !req.Since.IsZero() {
		l.t.Errorf("a read of %s has a position, %s, and a time, %s", req.Range, req.Continuation, req.Since)
	}
	return l.Feed.Read(ctx, req)
}

func (l linkFeed) Place(key string) (string, error) { return memfeed.EPK(key), nil }

type linkStore struct{ *link }

func (l linkStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	if err := l.store(); err != nil {
		return nil, err
	}
	return l.LeaseStore.List(ctx, prefix)
}

func (l linkStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	if err := l.store(); err != nil {
		return changefeed.Record{}, err
	}
	return l.LeaseStore.Read(ctx, id)
}

func (l linkStore) Create(ctx context.Context, r changefeed.Record) (string, error) {
	if err := l.store(); err != nil {
		return "", err
	}
	return l.LeaseStore.Create(ctx, r)
}

func (l linkStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if err := l.store(); err != nil {
		return "", err
	}
	return l.LeaseStore.Replace(ctx, r)
}

func (l linkStore) Delete(ctx context.Context, id, etag string) error {
	if err := l.store(); err != nil {
		return err
	}
	return l.LeaseStore.Delete(ctx, id, etag)
}

// crash ends the host at once for all other hosts: its calls fail, and its handlers deliver
// nothing more.
func (h *host) crash() {
	h.link.crashed.Store(true)
	h.end()
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
	h := &host{name: name, done: make(chan error, 1), link: &link{t: w.t, Feed: w.feed, LeaseStore: w.store}}
	if d, recorded := handler.(*deliveries); recorded {
		handler = changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			if h.link.crashed.Load() {
				return errCut
			}
			return d.Handle(ctx, b)
		})
	}
	p, err := changefeed.New(h.Feed(linkFeed{h.link}), h.Store(linkStore{h.link}), handler, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	h.Processor = p
	ctx, cancel := context.WithCancel(context.Background())
	h.end = cancel
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

// operator returns an operator of the world's processor.
func (w *world) operator() *changefeed.Operator {
	return changefeed.NewOperator(w.feed, w.store, nil)
}

// put writes n documents over keys keys, one transaction each.
func (w *world) put(n, keys int) {
	for i := range n {
		w.feed.Put(memfeed.Document{Key: fmt.Sprintf("key-%d", i%keys), ID: fmt.Sprintf("doc-%d", w.docs.Add(1))})
	}
}

// leases lists the lease records.
func (w *world) leases() []changefeed.Lease {
	w.t.Helper()
	leases, err := w.operator().Leases(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return leases
}

// owners counts live leases by owner.
func (w *world) owners() map[string]int {
	records, err := w.store.List(context.Background(), "changefeed")
	if err != nil {
		w.t.Fatal(err)
	}
	owners := map[string]int{}
	for _, r := range records {
		if !bytes.Contains(r.Body, []byte(`"LeaseToken"`)) {
			continue // not a live lease
		}
		_, owner, _ := bytes.Cut(r.Body, []byte(`"Owner":`))
		owner, _, _ = bytes.Cut(owner, []byte(","))
		name, _ := strconv.Unquote(string(owner)) // null is ""
		owners[name]++
	}
	return owners
}

// deliveries records the batches of handlers.
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
