package changefeed

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// shelf is a lease store in memory that may lose answers.
type shelf struct {
	records map[string]Record
	writes  int
	lose    bool // the answer to the next write
}

func (s *shelf) put(r Record) (string, error) {
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

func (s *shelf) List(context.Context, string) ([]Record, error) { panic("not used") }

func (s *shelf) Read(_ context.Context, id string) (Record, error) {
	if r, there := s.records[id]; there {
		return r, nil
	}
	return Record{}, ErrNotFound
}

func (s *shelf) Create(_ context.Context, r Record) (string, error) {
	if _, there := s.records[r.ID]; there {
		return "", ErrExists
	}
	return s.put(r)
}

func (s *shelf) Replace(ctx context.Context, r Record) (string, error) {
	if old, err := s.Read(ctx, r.ID); err != nil {
		return "", err
	} else if old.ETag != r.ETag {
		return "", ErrETagMismatch
	}
	return s.put(r)
}

func (s *shelf) Delete(ctx context.Context, id, etag string) error {
	if old, err := s.Read(ctx, id); err != nil {
		return err
	} else if old.ETag != etag {
		return ErrETagMismatch
	}
	delete(s.records, id)
	return nil
}

// newShelf returns an empty store and the env of a host that uses it.
func newShelf(t *testing.T) (*shelf, *env) {
	t.Helper()
	s := &shelf{records: map[string]Record{}}
	o, err := (&Options{Host: "a"}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &env{store: s, opts: o, clock: o.Clock, obs: &Observer{}, ids: recordIDs{prefix: "p"}, incarnation: "1", relist: newSignal()}
}

// keep stores a lease as it is.
func (s *shelf) keep(t *testing.T, l Lease) Lease {
	t.Helper()
	etag, err := s.Create(t.Context(), l.encode())
	if err != nil {
		t.Fatal(err)
	}
	l.ETag = etag
	return l
}

// Whoever completes a split late finds its children further along, and leaves them.
func TestALiveChildIsNotActivatedAgain(t *testing.T) {
	store, e := newShelf(t)
	r := FeedRange{Min: "", Max: "20"}
	child := store.keep(t, Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, Owner: "b", Epoch: 3, Continuation: `"9"`})
	want := child
	want.ETag, want.Owner, want.Epoch, want.Continuation, want.State = "long ago", "", 2, `"5"`, LeasePending
	if err := (&splits{e}).activate(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got, err := readLease(t.Context(), store, child.ID); err != nil || got.Owner != "b" || got.Continuation != `"9"` || got.ETag != child.ETag {
		t.Errorf("the child is %+v, error %v; it was another's already", got, err)
	}
}

// A done record is deleted once its own parent is done or gone, not before: that a parent
// is there proves that its children are.
func TestRecordsAreSweptFromTheTop(t *testing.T) {
	for state, swept := range map[LeaseState]bool{LeaseSplit: false, LeaseLive: false, LeaseDone: true, "gone": true} {
		store, e := newShelf(t)
		if state != "gone" {
			store.keep(t, Lease{ID: "p..-FF", Version: 1, Token: "-FF", Range: FullRange(), State: state})
		}
		r := FeedRange{Min: "", Max: "20"}
		done := store.keep(t, Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, State: LeaseDone, Parent: "p..-FF"})
		(&splits{e}).sweep(t.Context(), done)
		if _, there := store.records[done.ID]; there == swept {
			t.Errorf("below a parent that is %q: is it there? %t", state, there)
		}
	}
}

// A gap that is filled where the record of a former lease is has a higher epoch than that one.
func TestTheEpochOfAFilledGapRises(t *testing.T) {
	store, e := newShelf(t)
	r := FeedRange{Min: "", Max: "20"}
	done := store.keep(t, Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, State: LeaseDone, Epoch: 7})
	if err := (&gaps{env: e}).fill(t.Context(), listing{info: &Lease{}}, r); err != nil {
		t.Fatal(err)
	}
	if got, err := readLease(t.Context(), store, done.ID); err != nil || got.State != LeaseLive || got.Epoch <= 7 {
		t.Errorf("the lease is %+v, error %v; want a live one of a higher epoch than 7", got, err)
	}
}

// A heartbeat is written again after somebody deleted it, and after an answer got lost.
func TestAHeartbeatIsWrittenAgain(t *testing.T) {
	store, e := newShelf(t)
	p := &presence{env: e, swept: sweepSchedule{}}
	beat := func(what string, want bool) {
		t.Helper()
		if ok := p.write(t.Context(), heartbeat{}, time.Now()); ok != want {
			t.Errorf("%s: written %t, want %t", what, ok, want)
		}
	}
	id := e.ids.host("a", "1")
	store.lose = true
	beat("the answer to the first gets lost", false)
	beat("it finds its own", false)
	beat("and goes on from it", true)
	store.lose = true
	beat("the answer to the next gets lost", false)
	beat("it finds its own", false)
	beat("and goes on from it", true)
	delete(store.records, id)
	beat("somebody deleted it", false)
	beat("so it is created", true)
	var h heartbeat
	if err := json.Unmarshal(store.records[id].Body, &h); err != nil || h.Host != "a" {
		t.Errorf("the record is %+v, error %v", h, err)
	}
}

// A rewind and a retry forget what belonged to the position before.
func TestARewindForgetsWhatWasHandled(t *testing.T) {
	l := Lease{
		Continuation: `"9"`, LSN: 9, ChangeTime: 90, Delivered: 12, Attempts: []DocumentAttempts{{"10:a", 2}},
		Health: Stopped, Failures: 3, Error: "bad", Failing: time.Unix(1, 0), Request: Request{Retry: true, Rewind: &RangeToken{Since: time.Unix(5, 0)}},
	}
	applyRequest(&l)
	if l.Continuation != "" || !l.Since.Equal(time.Unix(5, 0)) || l.LSN != 0 || l.ChangeTime != 0 || l.Delivered != 0 || l.Attempts != nil {
		t.Errorf("%+v still tells of the position before", l)
	}
	if l.Health != Healthy || l.Failures != 0 || l.Error != "" || !l.Failing.IsZero() || !l.Request.equal(Request{}) {
		t.Errorf("%+v still tells of the failure, or of the request", l)
	}
}

// What a split lease hands to its children is its position, be it a time.
func TestASplitHandsItsTimeOn(t *testing.T) {
	since := time.Unix(5, 0)
	l := Lease{Range: FullRange(), Since: since, Owner: "a", Incarnation: "1", Epoch: 2}
	l.replaceBy([]FeedRange{{Max: "20"}, {Min: "20", Max: maxKey}})
	if len(l.Children) != 2 || !l.Children[0].Since.Equal(since) || !l.Children[1].Since.Equal(since) || l.Owner != "" || l.State != LeaseSplit {
		t.Errorf("split %+v", l)
	}
}

// For how long a lease must be seen unchanged before another host may take it.
func TestLifetime(t *testing.T) {
	for name, c := range map[string]struct {
		lease Lease
		want  time.Duration
	}{
		"nobody's":                             {Lease{Expiry: time.Hour}, 0},
		"with the observer's expiry":           {Lease{Owner: "a", Expiry: 20 * time.Second}, 20 * time.Second},
		"with a longer one":                    {Lease{Owner: "a", Expiry: time.Hour}, time.Hour},
		"with a shorter one":                   {Lease{Owner: "a", Expiry: time.Second}, 20 * time.Second},
		"of another product":                   {Lease{Owner: "net"}, time.Minute},
		"taken from one of ours, and given up": {Lease{takenOver: true, Expiry: time.Hour}, time.Hour},
	} {
		if got := c.lease.lifetime(20 * time.Second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Free leases fill the first vacancies: a host with too many passes its own on to those
// behind, so that nobody gets more than its share.
func TestBalanceCountsFreeLeasesFirst(t *testing.T) {
	v := balanceView{self: "a", hosts: []hostKey{"a", "b", "c"}}
	for i := range 6 {
		l := balanceLease{id: fmt.Sprint(i), owner: "a"}
		if i == 5 {
			l.owner = ""
		}
		v.leases = append(v.leases, l)
	}
	to := slices.Sorted(maps.Values(balance(v).handoff))
	if !slices.Equal(to, []hostKey{"b", "c", "c"}) {
		t.Errorf("passed on to %v; want two for c, and one for b, who is due the free one", to)
	}
}
