package changefeed

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// desk is a lease store whose requests fail on demand, and what a host at it was told.
type desk struct {
	shelf
	mu      sync.Mutex
	fail    map[string]error // by the request's name
	created []Record
	told    []any // to the observer
}

// newDesk returns an empty store and the env of a host that uses it at 1000 s.
func newDesk(t *testing.T) (*desk, *env) {
	t.Helper()
	d := &desk{shelf: shelf{records: map[string]Record{}}, fail: map[string]error{}}
	c := &manualClock{now: time.Unix(1000, 0).UTC()}
	o, err := (&Options{Host: "a", Clock: c, Now: c.Now, Observer: &Observer{
		LeaseAcquired:  func(e LeaseAcquired) { d.told = append(d.told, e) },
		LeaseError:     func(e LeaseError) { d.told = append(d.told, e) },
		RangeStuck:     func(e RangeStuck) { d.told = append(d.told, e) },
		RangeRecovered: func(e RangeRecovered) { d.told = append(d.told, e) },
		RangeSplit:     func(e RangeSplit) { d.told = append(d.told, e) },
		GapRepaired:    func(e GapRepaired) { d.told = append(d.told, e) },
		DuplicateHost:  func(e DuplicateHost) { d.told = append(d.told, e) },
	}}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, &env{
		store: d, opts: o, clock: c, obs: o.Observer, ids: recordIDs{prefix: "p"},
		self: "a/1", incarnation: "1", relist: newSignal(),
	}
}

// ask begins a request.
func (d *desk) ask(name string) (end func(), err error) {
	d.mu.Lock()
	return d.mu.Unlock, d.fail[name]
}

func (d *desk) List(_ context.Context, prefix string) (records []Record, err error) {
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

func (d *desk) Read(ctx context.Context, id string) (Record, error) {
	end, err := d.ask("read")
	defer end()
	if err != nil {
		return Record{}, err
	}
	return d.shelf.Read(ctx, id)
}

func (d *desk) Create(ctx context.Context, r Record) (string, error) {
	end, err := d.ask("create")
	defer end()
	if err != nil {
		return "", err
	}
	d.created = append(d.created, r)
	return d.shelf.Create(ctx, r)
}

func (d *desk) Replace(ctx context.Context, r Record) (string, error) {
	end, err := d.ask("replace")
	defer end()
	if err != nil {
		return "", err
	}
	return d.shelf.Replace(ctx, r)
}

func (d *desk) Delete(ctx context.Context, id, etag string) error {
	end, err := d.ask("delete")
	defer end()
	if err != nil {
		return err
	}
	return d.shelf.Delete(ctx, id, etag)
}

// stored is a lease as the store has it, without its ETag; zero if it is not there.
func (d *desk) stored(t *testing.T, id string) Lease {
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
func (d *desk) expect(t *testing.T, what string, want Lease) {
	t.Helper()
	if got := d.stored(t, want.ID); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: stored is\n%+v, want\n%+v", what, got, want)
	}
}

// expectTold fails unless the observer was told just that.
func (d *desk) expectTold(t *testing.T, what string, want ...any) {
	t.Helper()
	if len(d.told)+len(want) > 0 && !reflect.DeepEqual(d.told, want) {
		t.Errorf("%s: told %+v, want %+v", what, d.told, want)
	}
	d.told = nil
}

// leaseOf is a live lease of the env's processor.
func (e *env) leaseOf(r FeedRange) Lease {
	return Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, Mode: modeIncremental}
}

// sent reports whether the leases are to be looked at now, and forgets it.
func (h signal) sent() bool {
	select {
	case <-h:
		return true
	default:
		return false
	}
}

// putBody stores a record of any content.
func (d *desk) putBody(t *testing.T, id string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.shelf.Create(t.Context(), Record{ID: id, Body: text}); err != nil {
		t.Fatal(err)
	}
}
