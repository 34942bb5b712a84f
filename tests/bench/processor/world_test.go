package processor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/bench/measure"
	"feedbox/tests/requests"
)

// asked reports whether figures are wanted, full whether they must be precise. Otherwise the
// tests only check that a measurement works.
func asked() bool { return os.Getenv(figuresFile) != "" }

func full() bool { return asked() && os.Getenv(quickRun) == "" }

// tell writes figures for the stage, or to the test's log without a stage.
func tell(t *testing.T, figures ...measure.Figure) {
	t.Helper()
	var text []byte
	for _, f := range figures {
		t.Logf("%s: %.4g %s, reference %.4g; %s", f.Name, f.Value, f.Unit, f.Floor, f.Note)
		line, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, line...)
	}
	path := os.Getenv(figuresFile)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(text); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// world is a container, a lease store and hosts of one processor, in a bubble.
type world struct {
	t     *testing.T
	feed  *memfeed.Container
	store *memstore.Store
	hosts map[string]*host
	gone  []*host // that left
	named int
	moved moves
}

// moves records which host acquired which lease, and when.
type moves struct {
	mu    sync.Mutex // guards the fields below
	owner map[string]string
	at    map[string]time.Time
	freed map[string]time.Time // when it was last released
	count map[string]int
}

func newWorld(t *testing.T, ranges int) *world {
	t.Helper()
	return &world{
		t: t, feed: memfeed.New(&memfeed.Options{Ranges: ranges}), store: memstore.New(nil), hosts: map[string]*host{},
		moved: moves{owner: map[string]string{}, at: map[string]time.Time{}, freed: map[string]time.Time{}, count: map[string]int{}},
	}
}

// host is a running processor. A crash cuts its access to the store.
type host struct {
	*changefeed.Processor
	requests.Counts
	cancel context.CancelFunc
	ended  chan error
	cut    atomic.Bool
}

var errCut = errors.New("cannot be reached")

// cutStore is a host's access to the lease store.
type cutStore struct {
	changefeed.LeaseStore
	h *host
}

func (s cutStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if s.h.cut.Load() {
		return "", errCut
	}
	return s.LeaseStore.Replace(ctx, r)
}

func (s cutStore) Delete(ctx context.Context, id, etag string) error {
	if s.h.cut.Load() {
		return errCut
	}
	return s.LeaseStore.Delete(ctx, id, etag)
}

// join starts a host; a nil handler does nothing.
func (w *world) join(o changefeed.Options, handler changefeed.Handler) string {
	w.t.Helper()
	if handler == nil {
		handler = changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
	}
	w.named++
	name := fmt.Sprintf("host-%02d", w.named)
	o.Host = name
	if o.Observer == nil {
		o.Observer = &changefeed.Observer{}
	}
	observer := *o.Observer
	observer.LeaseAcquired = func(e changefeed.LeaseAcquired) { w.moved.note(e.Lease, name) }
	observer.LeaseReleased = func(e changefeed.LeaseReleased) { w.moved.free(e.Lease) }
	o.Observer = &observer
	h := &host{ended: make(chan error, 1)}
	p, err := changefeed.New(h.Feed(w.feed), h.Store(cutStore{w.store, h}), handler, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	h.Processor = p
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() { h.ended <- p.Run(ctx) }()
	w.hosts[name] = h
	return name
}

// leave stops a host gracefully or crashes it. It does not wait.
func (w *world) leave(name string, crash bool) {
	h := w.hosts[name]
	delete(w.hosts, name)
	h.cut.Store(crash)
	h.cancel()
	w.gone = append(w.gone, h)
}

// end stops all hosts and waits for them.
func (w *world) end() {
	for _, h := range w.hosts {
		h.cancel()
	}
	for _, h := range slices.AppendSeq(w.gone, maps.Values(w.hosts)) {
		if err := <-h.ended; err != nil {
			w.t.Errorf("a host ended with %v", err)
		}
	}
}

func (m *moves) note(lease, host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owner[lease], m.at[lease] = host, time.Now()
	m.count[lease]++
}

func (m *moves) free(lease string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed[lease] = time.Now()
}

// of returns the leases whose latest owner is host.
func (m *moves) of(host string) (leases []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for lease, owner := range m.owner {
		if owner == host {
			leases = append(leases, lease)
		}
	}
	return leases
}

// balanced waits until the present hosts have even shares of all leases.
func (w *world) balanced(leases int) time.Duration {
	w.t.Helper()
	return w.until(2*time.Minute, "balanced", func() bool {
		all := 0
		for name := range w.hosts {
			n := len(w.moved.of(name))
			if n < leases/len(w.hosts) || n > (leases+len(w.hosts)-1)/len(w.hosts) {
				return false
			}
			all += n
		}
		return all == leases
	})
}

// taken waits until these leases have new owners, and returns how long each was unowned:
// since its release, or since began if it was not released.
func (w *world) taken(leases []string, gone string, began time.Time) (took []time.Duration) {
	w.t.Helper()
	w.until(4*time.Minute, "taken over", func() bool { return len(w.moved.of(gone)) == 0 })
	w.moved.mu.Lock()
	defer w.moved.mu.Unlock()
	for _, l := range leases {
		from := began
		if freed := w.moved.freed[l]; freed.After(from) {
			from = freed
		}
		took = append(took, w.moved.at[l].Sub(from))
	}
	return took
}

// until waits in virtual time.
func (w *world) until(limit time.Duration, what string, ok func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			w.t.Fatalf("not %s within %s", what, limit)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// names returns the sorted names of the running hosts.
func (w *world) names() []string { return slices.Sorted(maps.Keys(w.hosts)) }

// quantile of durations, in seconds.
func quantile(all []time.Duration, q float64) float64 {
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))].Seconds()
}
