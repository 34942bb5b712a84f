package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// faultyStore is a lease store whose requests fail on demand. It also records the events of
// its host's observer.
type faultyStore struct {
	mapStore
	mu      sync.Mutex
	fail    map[string]error // by the request's name
	created []Record
	events  []any // to the observer
}

// newFaultyStore returns an empty store, and the env of a host that uses it at 1000 s.
func newFaultyStore(t testing.TB) (*faultyStore, *env) {
	t.Helper()
	d := &faultyStore{mapStore: mapStore{records: map[string]Record{}}, fail: map[string]error{}}
	c := &manualClock{now: time.Unix(1000, 0).UTC()}
	o, err := (&Options{Host: "a", Clock: c, Now: c.Now, Observer: &Observer{
		LeaseAcquired:  func(e LeaseAcquired) { d.see(e) },
		LeaseError:     func(e LeaseError) { d.see(e) },
		RangeStuck:     func(e RangeStuck) { d.see(e) },
		RangeRecovered: func(e RangeRecovered) { d.see(e) },
		RangeSplit:     func(e RangeSplit) { d.see(e) },
		GapRepaired:    func(e GapRepaired) { d.see(e) },
		DuplicateHost:  func(e DuplicateHost) { d.see(e) },
	}}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, &env{
		store: d, opts: o, clock: c, obs: o.Observer, ids: recordIDs{prefix: "p"},
		self: "a/1", incarnation: "1", relist: newSignal(),
	}
}

func (d *faultyStore) see(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
}

// ask begins a request and returns the error to fail with.
func (d *faultyStore) ask(name string) (end func(), err error) {
	d.mu.Lock()
	return d.mu.Unlock, d.fail[name]
}

func (d *faultyStore) List(_ context.Context, prefix string) (records []Record, err error) {
	end, err := d.ask("list")
	defer end()
	if err != nil {
		return nil, err
	}
	for id, r := range d.records {
		if strings.HasPrefix(id, prefix) {
			records = append(records, r)
		}
	}
	return records, nil
}

func (d *faultyStore) Read(ctx context.Context, id string) (Record, error) {
	end, err := d.ask("read")
	defer end()
	if err != nil {
		return Record{}, err
	}
	return d.mapStore.Read(ctx, id)
}

func (d *faultyStore) Create(ctx context.Context, r Record) (string, error) {
	end, err := d.ask("create")
	defer end()
	if err != nil {
		return "", err
	}
	d.created = append(d.created, r)
	return d.mapStore.Create(ctx, r)
}

func (d *faultyStore) Replace(ctx context.Context, r Record) (string, error) {
	end, err := d.ask("replace")
	defer end()
	if err != nil {
		return "", err
	}
	return d.mapStore.Replace(ctx, r)
}

func (d *faultyStore) Delete(ctx context.Context, id, etag string) error {
	end, err := d.ask("delete")
	defer end()
	if err != nil {
		return err
	}
	return d.mapStore.Delete(ctx, id, etag)
}

// stored returns a stored lease without its ETag, or the zero lease.
func (d *faultyStore) stored(t *testing.T, id string) Lease {
	t.Helper()
	r, there := d.records[id]
	if !there {
		return Lease{}
	}
	l, err := decodeLease(r)
	if err != nil {
		t.Fatal(err)
	}
	l.ETag = ""
	return l
}

// expect fails unless the lease is stored so.
func (d *faultyStore) expect(t *testing.T, what string, want Lease) {
	t.Helper()
	if got := d.stored(t, want.ID); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: stored is\n%+v, want\n%+v", what, got, want)
	}
}

// expectEvents fails unless the observer received exactly these events.
func (d *faultyStore) expectEvents(t *testing.T, what string, want ...any) {
	t.Helper()
	if len(d.events)+len(want) > 0 && !reflect.DeepEqual(d.events, want) {
		t.Errorf("%s: reported %+v, want %+v", what, d.events, want)
	}
	d.events = nil
}

// leaseOf returns a live lease of the env's processor.
func (e *env) leaseOf(r FeedRange) Lease {
	return Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, Mode: modeIncremental}
}

// sent reports whether the signal was sent, and clears it.
func (h signal) sent() bool {
	select {
	case <-h:
		return true
	default:
		return false
	}
}

// putBody stores a record with any content.
func (d *faultyStore) putBody(t *testing.T, id string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.mapStore.Create(t.Context(), Record{ID: id, Body: text}); err != nil {
		t.Fatal(err)
	}
}

// mapStore is an in-memory lease store that may lose replies.
type mapStore struct {
	mu      sync.Mutex // guards the fields below during calls
	records map[string]Record
	writes  int
	lose    bool // the answer to the next write
}

// put stores a record. Called with mu.
func (s *mapStore) put(r Record) (string, error) {
	s.writes++
	r.ETag = fmt.Sprint(s.writes)
	s.records[r.ID] = r
	if s.lose {
		s.lose = false
		return "", errTest
	}
	return r.ETag, nil
}

var errTest = fmt.Errorf("the answer got lost")

func (s *mapStore) List(context.Context, string) ([]Record, error) { panic("not used") }

func (s *mapStore) Read(_ context.Context, id string) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(id)
}

// get returns a record. Called with mu.
func (s *mapStore) get(id string) (Record, error) {
	if r, there := s.records[id]; there {
		return r, nil
	}
	return Record{}, ErrNotFound
}

func (s *mapStore) Create(_ context.Context, r Record) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.records[r.ID]; there {
		return "", ErrExists
	}
	return s.put(r)
}

func (s *mapStore) Replace(_ context.Context, r Record) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, err := s.get(r.ID); err != nil {
		return "", err
	} else if old.ETag != r.ETag {
		return "", ErrETagMismatch
	}
	return s.put(r)
}

func (s *mapStore) Delete(_ context.Context, id, etag string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, err := s.get(id); err != nil {
		return err
	} else if old.ETag != etag {
		return ErrETagMismatch
	}
	delete(s.records, id)
	return nil
}

// newMapStore returns an empty store and the env of a host that uses it.
func newMapStore(t *testing.T) (*mapStore, *env) {
	t.Helper()
	s := &mapStore{records: map[string]Record{}}
	o, err := (&Options{Host: "a"}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &env{store: s, opts: o, clock: o.Clock, obs: &Observer{}, ids: recordIDs{prefix: "p"}, incarnation: "1", relist: newSignal()}
}

// keep stores a lease as it is.
func (s *mapStore) keep(t *testing.T, l Lease) Lease {
	t.Helper()
	etag, err := s.Create(t.Context(), l.encode())
	if err != nil {
		t.Fatal(err)
	}
	l.ETag = etag
	return l
}
