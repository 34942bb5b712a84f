package changefeed

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The info record also has the start position of a lost lease.
func TestInfoRecordDecidesFirstLeases(t *testing.T) {
	at := time.Unix(500, 0).UTC()
	splitFeed := []FeedRange{rng("20", "FF"), rng("", "20")}
	begin := func(since time.Time, ranges ...FeedRange) (tokens []RangeToken) {
		for _, r := range ranges {
			tokens = append(tokens, RangeToken{Range: r, Since: since})
		}
		return tokens
	}
	for name, tt := range map[string]struct {
		scope      []FeedRange
		start      Start
		there      []FeedRange // leases that are there
		remembered []Lease
		feed       physical
		want       Lease
	}{
		"from the beginning": {want: Lease{Children: begin(time.Time{}, rng("", "20"), rng("20", "FF"))}},
		"since a time":       {start: FromTime(at), want: Lease{Since: at, Children: begin(at, rng("", "20"), rng("20", "FF"))}},
		"from now": {start: FromNow(), feed: physical{end: `"7"`}, want: Lease{Since: time.Unix(1000, 0).UTC().Add(-time.Hour), Children: []RangeToken{
			{Range: rng("", "20"), Continuation: `"7"`}, {Range: rng("20", "FF"), Continuation: `"7"`},
		}}},
		"of a scope": {scope: []FeedRange{rng("40", "50"), rng("10", "30")}, want: Lease{
			Children: begin(time.Time{}, rng("40", "50"), rng("10", "20"), rng("20", "30")), properties: map[string]string{"scope": "10-30 40-50"},
		}},
		"beside leases that are there": {there: []FeedRange{rng("", "10")}, want: Lease{Children: begin(time.Time{}, rng("10", "20"), rng("20", "FF"))}},
		"of leases that are remembered in part": {
			start: FromNow(), remembered: []Lease{{Range: rng("", "20"), Continuation: `"5"`, Epoch: 6}, {Range: rng("20", "30"), Continuation: `"8"`, Epoch: 3}},
			want: Lease{Epoch: 6, Children: []RangeToken{{Range: rng("30", "FF")}}},
		},
	} {
		d, e := newFaultyStore(t)
		tt.feed.ranges = splitFeed
		e.feed, e.opts.Start = &tt.feed, tt.start
		if tt.scope != nil {
			e.opts.Scope = tt.scope
		}
		r := newRun(e)
		r.gaps.remembered = packLeases(tt.remembered)
		var seen listing
		for _, there := range tt.there {
			seen.leases = append(seen.leases, d.keep(t, e.leaseOf(there)))
		}
		if done, err := r.initialize(t.Context(), seen); done || err != nil {
			t.Errorf("%s: done %t, error %v", name, done, err)
		}
		tt.want.ID, tt.want.Version, tt.want.State, tt.want.Timestamp = "p.info", 1, LeaseSplit, e.clock.Now()
		for _, lost := range tt.remembered { // they continue, and are no children of the record
			if l := d.stored(t, e.ids.lease(lost.Range)); l.State != LeaseLive || l.position() != lost.position() || l.Epoch != lost.Epoch {
				t.Errorf("%s: the lease is %+v, want it live as %+v", name, l, lost)
			}
		}
		slices.SortFunc(d.created, func(a, b Record) int { return strings.Compare(b.ID, a.ID) })
		info, err := decodeLease(d.created[0])
		if info.Token = ""; (info.History == "") != (tt.want.History == "") { // it has no range; new histories are random
			info.History = tt.want.History
		}
		if err != nil || !reflect.DeepEqual(info, tt.want) {
			t.Errorf("%s: the info record was made as\n%+v, error %v, want\n%+v", name, info, err, tt.want)
		}
		if d.stored(t, "p.info").State != LeaseDone || len(d.records) != 1+len(tt.there)+len(tt.remembered)+len(tt.want.Children) {
			t.Errorf("%s: there are %v", name, slices.Sorted(maps.Keys(d.records)))
		}
		for _, c := range tt.want.Children {
			if l := d.stored(t, e.ids.lease(c.Range)); l.State != LeaseLive || l.position() != c || l.Epoch != tt.want.Epoch {
				t.Errorf("%s: the lease is %+v, want it live at %+v", name, l, c)
			}
		}
	}
}

// The cause of the failure is returned.
func TestFailedInitializationWritesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		start Start
		feed  physical
		fail  error // of the record's creation
		want  string
	}{
		"the ranges are not known":         {feed: physical{err: errTest}, want: errTest.Error()},
		"the ranges are not the whole":     {feed: physical{ranges: []FeedRange{rng("", "20")}}, want: "do not cover"},
		"now is not known":                 {start: FromNow(), feed: physical{nowErr: errTest}, want: errTest.Error()},
		"now is nowhere":                   {start: FromNow(), want: "no continuation"},
		"the tokens are for a part":        {start: FromTokens(RangeToken{Range: rng("", "20")}), want: "do not cover"},
		"the record cannot be written":     {fail: errTest, want: "create p.info: " + errTest.Error()},
		"another host has written its own": {fail: ErrExists},
	} {
		d, e := newFaultyStore(t)
		if tt.feed.ranges == nil {
			tt.feed.ranges = []FeedRange{FullRange()}
		}
		e.feed, e.opts.Start = &tt.feed, tt.start
		if tt.fail != nil {
			d.fail["create"] = tt.fail
		}
		done, err := newRun(e).initialize(t.Context(), listing{})
		if done || tt.want == "" && err != nil || tt.want != "" && !strings.Contains(fmt.Sprint(err), tt.want) || d.writes > 0 {
			t.Errorf("%s: done %t, error %v, %d records written; want %q", name, done, err, d.writes, tt.want)
		}
	}
}

// The initialization is completed before anything is processed.
func TestInitializationOfAnotherHostIsCompleted(t *testing.T) {
	d, e := newFaultyStore(t)
	info := d.keep(t, Lease{ID: "p.info", Version: 1, State: LeaseSplit, Children: []RangeToken{{Range: FullRange(), Continuation: `"5"`}}})
	r := newRun(e)
	if done, err := r.initialize(t.Context(), listing{info: &info}); done || err != nil {
		t.Errorf("done %t, error %v", done, err)
	}
	if l := d.stored(t, "p..-FF"); l.State != LeaseLive || l.Continuation != `"5"` || l.ID == "" {
		t.Errorf("the first lease is %+v", l)
	}
	info = d.stored(t, "p.info")
	if done, err := r.initialize(t.Context(), listing{info: &info}); !done || err != nil || info.State != LeaseDone {
		t.Errorf("afterwards it is %q; done %t, error %v", info.State, done, err)
	}
	info.State = LeaseSplit
	d.fail["replace"] = errTest
	if done, err := r.initialize(t.Context(), listing{info: &info}); done || !errors.Is(err, errTest) {
		t.Errorf("it cannot be completed: done %t, error %v", done, err)
	}
}

// The host that decided many first leases creates them. The others wait as long as it does so.
func TestManyFirstLeasesAreLeftToTheHostThatDecidedThem(t *testing.T) {
	_, e := newFaultyStore(t)
	r := newRun(e)
	info := Lease{ID: "p.info", ETag: "1", State: LeaseSplit, Children: make([]RangeToken, 1000)}
	for i := range info.Children {
		info.Children[i].Range = rng(fmt.Sprintf("%08X", i), fmt.Sprintf("%08X", i+1))
	}
	few := info
	few.Children = info.Children[:32]
	last := r.ids.lease(info.Children[999].Range)
	c := e.clock.(*manualClock)
	began := c.now
	for _, tt := range []struct {
		what   string
		seen   listing
		edit   func()
		after  time.Duration // of the last change
		waits  bool
		unless bool // this host has decided them
	}{
		{what: "no info record"},
		{what: "few leases", seen: listing{info: &few}},
		{what: "just decided", seen: listing{info: &info}, waits: true},
		{what: "decided by this host", seen: listing{info: &info}, unless: true},
		{what: "quiet for twice Acquire less the jitter", seen: listing{info: &info}, after: 2*e.opts.Acquire - time.Millisecond, waits: true},
		{what: "quiet for longer", seen: listing{info: &info}, after: 3 * e.opts.Acquire},
		{what: "a lease is created", seen: listing{info: &info}, after: 3 * e.opts.Acquire, waits: true, edit: func() {
			r.lister.etags.observe([]Record{{ID: "p.info", ETag: "1"}, {ID: last, ETag: "1"}}, c.now)
		}},
		{what: "another record changes", seen: listing{info: &info}, after: 3 * e.opts.Acquire, edit: func() {
			r.lister.etags.observe([]Record{{ID: "p.info", ETag: "1"}, {ID: "p..else", ETag: "1"}}, c.now)
		}},
	} {
		c.now = began
		r.lister.etags = etagHistory{}
		r.lister.etags.observe([]Record{{ID: "p.info", ETag: "1"}}, c.now)
		c.now = c.now.Add(tt.after)
		if tt.edit != nil {
			tt.edit()
		}
		r.initializes = tt.unless
		pause := r.leaveInitialization(tt.seen, c.now)
		if waits := pause > 0; waits != tt.waits || waits && (pause < 800*time.Millisecond || pause > 1200*time.Millisecond) {
			t.Errorf("%s: waits for %s", tt.what, pause)
		}
	}
}

// A host that tried to decide the first leases after another one leaves them to that host.
func TestFirstLeasesAreLeftToTheFasterHost(t *testing.T) {
	d, e := newFaultyStore(t)
	e.feed = &physical{ranges: []FeedRange{FullRange()}}
	r := newRun(e)
	info := Lease{ID: "p.info", Version: 1, State: LeaseSplit, Children: make([]RangeToken, 1000)}
	info = d.keep(t, info)
	if err := r.createInfo(t.Context(), listing{}); err != nil {
		t.Fatal(err)
	}
	now := e.clock.Now()
	r.lister.etags.observe([]Record{{ID: info.ID, ETag: info.ETag}}, now)
	if r.leaveInitialization(listing{info: &info}, now) == 0 {
		t.Error("creates the leases, too")
	}
}

// A host that waits for the first leases writes its heartbeat and no lease. The other host would
// otherwise count itself alone.
func TestHostWaitsForFirstLeasesWithAHeartbeat(t *testing.T) {
	d, e := newFaultyStore(t)
	e.feed = &physical{}
	r := newRun(e)
	info := Lease{ID: "p.info", Version: 1, State: LeaseSplit}
	for i := range 100 {
		info.Children = append(info.Children, RangeToken{Range: rng(fmt.Sprintf("%02X", i), fmt.Sprintf("%02X", i+1))})
	}
	d.keep(t, info)
	pause, err := r.cycle(t.Context())
	if err != nil || pause == 0 || len(d.created) != 1 || d.created[0].ID != r.ids.host("a", r.incarnation) {
		t.Errorf("pause %s, error %v, %d records created; want only the heartbeat", pause, err, len(d.created))
	}
}
