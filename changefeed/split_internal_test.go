package changefeed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// physical is a feed with a given list of ranges and a given end.
type physical struct {
	Feed
	ranges   []FeedRange
	err      error
	end      string
	nowErr   error
	askedFor int // the ranges
}

func (f *physical) Ranges(context.Context) ([]FeedRange, error) {
	f.askedFor++
	return f.ranges, f.err
}

func (f *physical) Source(context.Context) (Source, error) { return Source{}, nil }

func (f *physical) Now(context.Context, FeedRange) (string, error) { return f.end, f.nowErr }

// The children come from the reply if they tile the range, else from the list of physical
// ranges if it does.
func TestChildrenOfSplitTileTheRange(t *testing.T) {
	wide, half, rest := rng("10", "30"), rng("10", "20"), rng("20", "30")
	for name, tt := range map[string]struct {
		reported, listed []FeedRange
		fails            error
		want             []FeedRange
		asked            int
	}{
		"reported":                        {reported: []FeedRange{rest, half}, want: []FeedRange{half, rest}},
		"reported in part, listed":        {reported: []FeedRange{rest}, listed: []FeedRange{rng("20", "FF"), rng("", "20")}, want: []FeedRange{half, rest}, asked: 1},
		"listed":                          {listed: []FeedRange{rng("20", "FF"), rng("", "20")}, want: []FeedRange{half, rest}, asked: 1},
		"listed as one":                   {listed: []FeedRange{rng("", "FF")}, asked: 1},
		"reported as one":                 {reported: []FeedRange{wide}, listed: []FeedRange{half, rest}},
		"neither is the whole":            {reported: []FeedRange{rest}, listed: []FeedRange{rng("", "18"), rng("20", "FF")}, asked: 1},
		"the list cannot be had":          {fails: errTest, asked: 1},
		"reported, the list is not asked": {reported: []FeedRange{half, rest}, fails: errTest, want: []FeedRange{half, rest}},
	} {
		_, e := newFaultyStore(t)
		feed := &physical{ranges: tt.listed, err: tt.fails}
		e.feed = feed
		got, err := (&splits{e}).childrenOf(t.Context(), wide, &SplitError{Range: wide, Children: tt.reported})
		if tt.want != nil && (err != nil || !reflect.DeepEqual(got, tt.want)) || tt.want == nil && err == nil || feed.askedFor != tt.asked {
			t.Errorf("%s: children %v, error %v, asked %d times", name, got, err, feed.askedFor)
		}
		if tt.fails != nil && tt.asked > 0 && !errors.Is(err, tt.fails) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// late is a store whose Replace fails from the nth call on, for a while or forever.
type late struct {
	*faultyStore
	replaces, from, until int
	err                   error
}

func (s *late) Replace(ctx context.Context, r Record) (string, error) {
	s.mu.Lock()
	s.replaces++
	fails := s.from > 0 && s.replaces >= s.from && (s.until == 0 || s.replaces < s.until)
	s.mu.Unlock()
	if fails {
		return "", s.err
	}
	return s.faultyStore.Replace(ctx, r)
}

// A failed step is reported and ends the attempt until the next call. A lost race to
// another host also ends it, without a report.
func TestSplitIsCompletedFromAnyStep(t *testing.T) {
	const missing, unknown, known, live = "missing", "not listed", "listed", "live"
	for name, tt := range map[string]struct {
		children string // as they are before
		fail     string // this request
		replaces int    // those from this one on
		until    int    // before this one, if any
		with     error
		parent   LeaseState // as it is after; "gone"
		child    LeaseState
		untold   bool
	}{
		"from the beginning":                     {children: missing, parent: "gone"},
		"children that were not listed":          {children: unknown, parent: "gone"},
		"children that were":                     {children: known, parent: "gone"},
		"children that live":                     {children: live, parent: "gone"},
		"no child can be made":                   {children: missing, fail: "create", with: errTest, parent: LeaseSplit, child: "gone"},
		"the parent cannot be confirmed":         {children: missing, replaces: 1, with: errTest, parent: LeaseSplit, child: LeasePending},
		"another host has finished it":           {children: missing, replaces: 1, with: ErrNotFound, parent: LeaseSplit, child: LeasePending, untold: true},
		"no child can be made live":              {children: missing, replaces: 2, until: 4, with: errTest, parent: LeaseSplit, child: LeasePending},
		"the parent cannot be finished":          {children: missing, replaces: 4, with: errTest, parent: LeaseSplit},
		"another host has finished it meanwhile": {children: missing, replaces: 4, with: ErrETagMismatch, parent: LeaseSplit, untold: true},
	} {
		d, e := newFaultyStore(t)
		store := &late{faultyStore: d, from: tt.replaces, until: tt.until, err: tt.with}
		e.store = store
		if tt.fail != "" {
			d.fail[tt.fail] = tt.with
		}
		parent := e.leaseOf(FullRange())
		parent.Continuation, parent.Epoch = `"5"`, 4
		parent.replaceBy([]FeedRange{rng("", "20"), rng("20", "FF")})
		parent = d.keep(t, parent)
		listed := map[string]Lease{parent.ID: parent}
		if tt.children != unknown { // then nothing need be read
			d.fail["read"] = errTest
		}
		for _, c := range parent.Children {
			child := parent.child(c, e.ids.lease(c.Range), e.clock.Now())
			if tt.children == live {
				child.State, child.Continuation = LeaseLive, `"9"` // it has gone on
			}
			if tt.children != missing {
				child = d.keep(t, child)
			}
			if tt.children == known || tt.children == live {
				listed[child.ID] = child
			}
		}
		err := (&splits{e}).complete(t.Context(), parent, listed)
		if wants := tt.with != nil && !tt.untold; wants != errors.Is(err, errTest) || !wants && err != nil {
			t.Errorf("%s: error %v", name, err)
		}
		for _, c := range parent.Children {
			want := parent.child(c, e.ids.lease(c.Range), e.clock.Now())
			if want.State = tt.child; tt.children == live {
				want.Continuation = `"9"`
			}
			if tt.child == "gone" {
				want = Lease{}
			}
			if got := d.stored(t, e.ids.lease(c.Range)); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the child is\n%+v, want\n%+v", name, got, want)
			}
		}
		if got := d.stored(t, parent.ID); (tt.parent == "gone") != (got.ID == "") || tt.parent != "gone" && got.State != tt.parent {
			t.Errorf("%s: the parent is %+v, want it %q", name, got, tt.parent)
		} else if confirmed := tt.replaces != 1 && tt.fail == ""; got.ID != "" && confirmed && !got.Timestamp.Equal(e.clock.Now()) {
			t.Errorf("%s: the parent was confirmed at %s", name, got.Timestamp)
		}
		if listed := e.relist.sent(); listed != (tt.parent == "gone") {
			t.Errorf("%s: the leases are listed at once: %t", name, listed)
		}
		if listed := tt.children == known || tt.children == live; listed && len(d.created) > 0 {
			t.Errorf("%s: %d children were created again", name, len(d.created))
		}
	}
}

// The unreadable record may be a split that must be completed first.
func TestRecordBelowUnreadableParentIsKept(t *testing.T) {
	d, e := newFaultyStore(t)
	done := e.leaseOf(rng("", "20"))
	done.State, done.Parent = LeaseDone, "p..-FF"
	done = d.keep(t, done)
	d.fail["read"] = errTest
	(&splits{e}).sweep(t.Context(), done)
	if _, there := d.records[done.ID]; !there {
		t.Error("it was deleted")
	}
	first := d.keep(t, Lease{ID: "p..0", Version: 1, Token: "-FF", Range: FullRange(), State: LeaseDone})
	(&splits{e}).sweep(t.Context(), first)
	if _, there := d.records[first.ID]; there {
		t.Error("one that has no parent stays")
	}
	d.fail = map[string]error{"delete": errTest}
	(&splits{e}).sweep(t.Context(), done)
	d.expectEvents(t, "a delete that fails", LeaseError{Lease: done.ID, Op: "delete", Err: errTest})
}

// The error of one request is returned.
func TestConcurrentRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at, most, all atomic.Int32
		began := time.Now()
		err := inParallel(100, func(i int) error {
			n := at.Add(1)
			defer at.Add(-1)
			most.Store(max(most.Load(), n))
			all.Add(1)
			time.Sleep(time.Second)
			if i == 7 {
				return fmt.Errorf("the eighth: %w", errTest)
			}
			return nil
		})
		if most.Load() != 32 || all.Load() != 100 || time.Since(began) != 4*time.Second {
			t.Errorf("%d of 100 at once, %d in %s; want 32, all in 4 s", most.Load(), all.Load(), time.Since(began))
		}
		if !errors.Is(err, errTest) || !strings.HasPrefix(err.Error(), "the eighth") {
			t.Errorf("error %v", err)
		}
	})
}

// A host stops after its write of the parent. Meanwhile another host completes the split, a child
// is split in turn and deleted, and a third host, which stopped before its write of the parent,
// creates the child again. The first host must not make that one live.
func TestChildCreatedAgainAfterItsSplitIsNotActivated(t *testing.T) {
	store, e := newMapStore(t)
	r := rng("", "20")
	parent := Lease{ID: "p..-FF", Version: 1, Token: "-FF", Range: FullRange(), Continuation: `"5"`}
	parent.replaceBy([]FeedRange{r, rng("20", "FF")})
	parent = store.keep(t, parent)
	id := e.ids.lease(r)
	e.store = &stopsAt{LeaseStore: store, lease: id, do: func() {
		pending, err := store.Read(t.Context(), id)
		if err == nil {
			err = store.Delete(t.Context(), id, pending.ETag)
		}
		if err != nil {
			t.Error(err)
		}
		store.keep(t, parent.child(parent.Children[0], id, e.clock.Now()))
	}}
	if err := (&splits{e}).complete(t.Context(), parent, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := readLease(t.Context(), store, id); err != nil || got.State != LeasePending {
		t.Errorf("the child is %q, error %v; its changes would be delivered again beside its own children", got.State, err)
	}
}

// stopsAt is a store whose caller stops before it replaces a lease.
type stopsAt struct {
	LeaseStore
	lease string
	do    func() // in the meantime
}

func (s *stopsAt) Replace(ctx context.Context, r Record) (string, error) {
	if r.ID == s.lease && s.do != nil {
		s.do()
		s.do = nil
	}
	return s.LeaseStore.Replace(ctx, r)
}

// A host that completes a split late leaves children that are further along.
func TestLiveChildIsNotActivatedAgain(t *testing.T) {
	store, e := newMapStore(t)
	r := rng("", "20")
	parent := Lease{ID: "p..-FF", Version: 1, Token: "-FF", Range: FullRange(), Continuation: `"5"`}
	parent.replaceBy([]FeedRange{r, rng("20", "FF")})
	parent = store.keep(t, parent)
	child := store.keep(t, Lease{ID: e.ids.lease(r), Version: 1, Token: r.String(), Range: r, Owner: "b", Epoch: 3, Continuation: `"9"`})
	if err := (&splits{e}).complete(t.Context(), parent, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := readLease(t.Context(), store, child.ID); err != nil || got.Owner != "b" || got.Continuation != `"9"` || got.ETag != child.ETag {
		t.Errorf("the child is %+v, error %v; it was another's already", got, err)
	}
}

// A done record is deleted once its own parent is done or gone, because the existence of a
// parent proves that its children exist.
func TestRecordsAreSweptFromTheTop(t *testing.T) {
	for state, swept := range map[LeaseState]bool{LeaseSplit: false, LeaseLive: false, LeaseDone: true, "gone": true} {
		store, e := newMapStore(t)
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
