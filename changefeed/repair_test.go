package changefeed

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Older leases of the same part are forgotten.
func TestLastLeaseOfGapIsRemembered(t *testing.T) {
	_, e := newFaultyStore(t)
	g := &gaps{env: e}
	low, high, pending := e.leaseOf(rng("", "20")), e.leaseOf(rng("20", "FF")), e.leaseOf(rng("20", "30"))
	pending.State = LeasePending
	look := func(what string, want []Lease, leases ...Lease) {
		t.Helper()
		g.remember(packLeases(leases), inspectTiling([]FeedRange{FullRange()}, leases))
		known := g.known()
		slices.SortFunc(known, func(a, b Lease) int { return byMin(a.Range, b.Range) })
		if !slices.EqualFunc(known, want, func(a, b Lease) bool { return a.position() == b.position() }) {
			t.Errorf("%s: remembered %+v, want %+v", what, known, want)
		}
	}
	look("whole", []Lease{low, high}, low, high)
	low.Continuation = `"5"`
	look("one is gone", []Lease{low, high}, low, pending)
	low.Continuation = `"6"`
	look("still", []Lease{low, high}, low, pending)
	high.Continuation = `"7"`
	look("it is back", []Lease{low, high}, low, high)
}

// If the lease exists after all, it is kept. The host that fills the gap reports it, once.
func TestGapIsFilledAtLastKnownPosition(t *testing.T) {
	gap := rng("20", "30")
	for name, tt := range map[string]struct {
		there    LeaseState // of the record with the gap's id
		fail     string     // this request
		with     error
		old      int64 // epoch of that record
		epoch    int64 // of the lease that is made, 0 if none is
		reported error
	}{
		"nothing there":                {there: "nothing", epoch: 6},
		"the lease is there":           {there: LeaseLive},
		"it was just split":            {there: LeaseSplit},
		"it is done":                   {there: LeaseDone, old: 9, epoch: 10},
		"it was done long ago":         {there: LeaseDone, old: 4, epoch: 7},
		"it never lived":               {there: LeasePending, old: 9, epoch: 10},
		"it cannot be made":            {there: "nothing", fail: "create", with: errTest, reported: errTest},
		"what is there cannot be read": {there: LeaseDone, fail: "read", with: errTest, reported: errTest},
		"it has gone":                  {there: LeaseDone, fail: "read", with: ErrNotFound},
		"it cannot be revived":         {there: LeaseDone, fail: "replace", with: errTest, reported: errTest},
		"another host was first":       {there: LeaseDone, fail: "replace", with: ErrETagMismatch},
	} {
		d, e := newFaultyStore(t)
		other, wide, want := e.leaseOf(rng("", "20")), e.leaseOf(rng("20", "FF")), e.leaseOf(gap)
		wide.Continuation, wide.Epoch = `"9"`, 6
		other.Continuation, other.Epoch = `"8"`, 9
		if tt.there != "nothing" {
			old := want
			old.State, old.Epoch, old.Continuation = tt.there, tt.old, `"1"`
			d.keep(t, old)
		}
		before := d.stored(t, want.ID)
		g := &gaps{env: e, since: map[FeedRange]time.Time{gap: e.clock.Now().Add(-e.opts.Expiry)}}
		if tt.fail != "" {
			d.fail[tt.fail] = tt.with
		}
		// Without these, the range of a container that lost changes would be read as if nothing had happened.
		wide.LSN, wide.Reached, wide.Term, wide.Lost = 9, 12, "p0:1", 7
		want.LSN, want.Reached, want.Term, want.Lost = 9, 12, "p0:1", 7
		g.remembered = packLeases([]Lease{wide, other})
		g.repair(t.Context(), listing{info: &Lease{}}, tiling{gaps: []FeedRange{gap}})
		switch want.Continuation, want.Epoch, want.Timestamp = `"9"`, tt.epoch, e.clock.Now(); {
		case tt.epoch > 0:
			d.expect(t, name, want)
			d.expectEvents(t, name, GapRepaired{Range: gap, From: RangeToken{Range: gap, Continuation: `"9"`}})
		case tt.reported != nil:
			if len(d.events) != 1 || d.events[0].(LeaseError).Op != "repair gap 20-30" || !errors.Is(d.events[0].(LeaseError).Err, tt.reported) {
				t.Errorf("%s: reported %+v", name, d.events)
			}
		default:
			d.expectEvents(t, name)
		}
		if after := d.stored(t, want.ID); tt.epoch == 0 && !reflect.DeepEqual(after, before) {
			t.Errorf("%s: the record is %+v, want it as it was", name, after)
		}
		if listed := e.relist.sent(); listed != (tt.epoch > 0) {
			t.Errorf("%s: the leases are listed at once: %t", name, listed)
		}
	}
}

// The owner of a lease that is gone again may have written it a moment ago.
func TestGapThatReturnsIsANewOne(t *testing.T) {
	d, e := newFaultyStore(t)
	c, g, gap := e.clock.(*manualClock), &gaps{env: e}, tiling{gaps: []FeedRange{rng("20", "30")}}
	for _, t2 := range []tiling{gap, {}, gap} {
		g.repair(t.Context(), listing{info: &Lease{}}, t2)
		c.now = c.now.Add(e.opts.Expiry)
	}
	if d.expectEvents(t, "the gap has just returned"); d.writes > 0 {
		t.Errorf("%d records written", d.writes)
	}
	g.repair(t.Context(), listing{info: &Lease{}}, gap)
	if d.writes != 1 {
		t.Errorf("%d records written after the gap has lasted", d.writes)
	}
}

func TestOverlapsAreReportedAndKept(t *testing.T) {
	d, e := newFaultyStore(t)
	(&gaps{env: e}).repair(t.Context(), listing{}, tiling{overlaps: [][2]string{{"p..-20", "p..10-30"}}})
	if len(d.events) != 1 || d.writes != 0 {
		t.Fatalf("reported %+v, %d records written", d.events, d.writes)
	}
	if e := d.events[0].(LeaseError); e.Lease != "p..-20" || e.Op != OpCheckTiling || !strings.Contains(e.Err.Error(), LeaseName("p..10-30")) {
		t.Errorf("reported %+v", e)
	}
}

// The rest starts at the lease's own position. The owner splits the lease, or any host if
// it has no owner.
func TestReplayedLeaseIsSplitIntoItsRest(t *testing.T) {
	for name, tt := range map[string]struct {
		owner  string // "b", "a" for this host, "worker" for one of its workers
		silent time.Duration
		fail   error // of its write
		split  bool
	}{
		"another's that lives":              {owner: "b", silent: 20*time.Second - 1},
		"another's that is gone":            {owner: "b", silent: 20 * time.Second, split: true},
		"its own, which it lost":            {owner: "a", split: true},
		"its own":                           {owner: "worker"},
		"unowned":                           {split: true},
		"one that cannot be written":        {fail: errTest},
		"one that another host was at, too": {fail: ErrETagMismatch},
	} {
		d, e := newFaultyStore(t)
		r := newRun(e)
		wide, narrow, want := e.leaseOf(FullRange()), e.leaseOf(rng("", "20")), e.leaseOf(rng("20", "FF"))
		wide.Epoch, wide.Continuation, wide.LSN = 4, `"5"`, 5
		switch tt.owner {
		case "b":
			wide.Owner, wide.Incarnation, wide.Expiry = "b", "2", r.opts.Expiry
		case "a", "worker":
			wide.Owner, wide.Incarnation, wide.Expiry = "a", r.incarnation, r.opts.Expiry
		}
		wide, narrow = d.keep(t, wide), d.keep(t, narrow)
		before := d.stored(t, wide.ID)
		r.lister.etags.observe([]Record{wide.encode()}, e.clock.Now().Add(-tt.silent))
		w := &worker{kick: newSignal()}
		if tt.owner == "worker" {
			r.workers.byLease[wide.ID] = w
		}
		if tt.fail != nil {
			d.fail["replace"] = tt.fail
		}
		seen := listing{leases: []Lease{narrow, wide}}
		r.replaceReplayed(t.Context(), seen, inspectTiling(r.opts.Scope, seen.leases))
		rest := []FeedRange{rng("20", "FF")}
		switch {
		case tt.split:
			want.Parent, want.Epoch, want.Continuation, want.LSN, want.Timestamp = wide.ID, 4, `"5"`, 5, e.clock.Now()
			d.expect(t, name, want)
			if _, there := d.records[wide.ID]; there {
				t.Errorf("%s: the wide lease is still there", name)
			}
			d.expectEvents(t, name, RangeSplit{LeaseRef: wide.ref(), Children: rest})
			continue
		case errors.Is(tt.fail, errTest):
			d.expectEvents(t, name, LeaseError{Lease: wide.ID, Op: "replace", Err: errTest})
		default:
			d.expectEvents(t, name)
		}
		if after := d.stored(t, wide.ID); !reflect.DeepEqual(after, before) || len(d.records) != 2 {
			t.Errorf("%s: the wide lease is %+v, of %d records", name, after, len(d.records))
		}
		order := stopOrder{given: true, replace: true, rest: rest, reason: "replaced by narrower leases"}
		if got, _ := w.current(); tt.owner == "worker" && !reflect.DeepEqual(got, order) {
			t.Errorf("%s: the worker has the order %+v, want %+v", name, got, order)
		}
	}
}

func TestMissingInfoRecordIsWaitedForEachTime(t *testing.T) {
	o, err := (&Options{}).resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &gaps{env: &env{opts: o}}
	now := time.Unix(100, 0)
	for range 2 {
		if _, missing := g.infoMissing(listing{}, now); !missing {
			t.Error("a record that is missed for the first time is not waited for")
		}
		if _, missing := g.infoMissing(listing{}, now.Add(o.Expiry)); missing {
			t.Error("a record that is gone for an expiry is still waited for")
		}
		now = now.Add(time.Hour)
		if _, missing := g.infoMissing(listing{info: &Lease{}}, now); missing {
			t.Error("a record that is there is missed")
		}
		now = now.Add(time.Hour)
	}
}

// The new epoch is above that of the former lease whose record is there.
func TestEpochOfFilledGapRises(t *testing.T) {
	store, e := newMapStore(t)
	r := FeedRange{Min: "", Max: "20"}
	done := store.keep(t, Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, State: LeaseDone, Epoch: 7})
	if err := (&gaps{env: e}).fill(t.Context(), listing{info: &Lease{}}, r, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := readLease(t.Context(), store, done.ID); err != nil || got.State != LeaseLive || got.Epoch <= 7 {
		t.Errorf("the lease is %+v, error %v; want a live one of a higher epoch than 7", got, err)
	}
}
