package changefeed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// A leaving host is due nothing even while its leases show that it lives.
func TestLeavingHostIsDueNothing(t *testing.T) {
	m := &membership{
		env:   &env{self: "b/2", opts: Options{Host: "b", Expiry: 20 * time.Second, Acquire: 10 * time.Second}},
		etags: &etagHistory{}, workers: &workers{},
	}
	seen := listing{
		hosts:  []heartbeat{{Host: "a", Incarnation: "1", Draining: true}},
		leases: []Lease{{ID: "l", Owner: "a", Incarnation: "1", Expiry: 20 * time.Second}},
	}
	v := m.balanceView(seen, tiling{}, time.Unix(100, 0))
	if !slices.Equal(v.hosts, []hostKey{"b/2"}) || !slices.Equal(v.leaving, []hostKey{"a/1"}) {
		t.Errorf("hosts %v, leaving %v; want b alone, and a leaving", v.hosts, v.leaving)
	}
}

// member returns the membership of host b with records of the given ages.
func member(t *testing.T, ages map[string]time.Duration) (*faultyStore, *membership) {
	t.Helper()
	d, e := newFaultyStore(t)
	e.self, e.opts.Host = "b/2", "b"
	history := &etagHistory{began: e.clock.Now(), seen: map[uint64]etagSeen{}}
	for id, age := range ages {
		history.seen[hash(id)] = etagSeen{since: -age, changed: true}
	}
	return d, &membership{env: e, etags: history, workers: &workers{byLease: map[string]*worker{}}, duplicates: map[hostKey]bool{}}
}

// A host is quiet from half of its expiry on. A leaving or spare host is due nothing.
func TestHostIsAliveUntilItsExpiry(t *testing.T) {
	const s = time.Second
	host := func(h heartbeat) heartbeat { h.Host, h.Incarnation = "a", "1"; return h }
	lease := func(id string, expiry time.Duration) Lease {
		return Lease{ID: id, Owner: "a", Incarnation: "1", Expiry: expiry}
	}
	for name, tt := range map[string]struct {
		age                   time.Duration // of a's record
		hosts                 []heartbeat
		leases                []Lease
		first, second         time.Duration // ages of the leases "1" and "2"
		alive, quiet, leaving bool          // a is
	}{
		"fresh":                       {hosts: []heartbeat{host(heartbeat{})}, age: 10*s - 1, alive: true},
		"quiet":                       {hosts: []heartbeat{host(heartbeat{})}, age: 10 * s, alive: true, quiet: true},
		"gone":                        {hosts: []heartbeat{host(heartbeat{})}, age: 20 * s},
		"of a long expiry":            {hosts: []heartbeat{host(heartbeat{ExpiryMS: 60000})}, age: 30*s - 1, alive: true},
		"quiet for a long one":        {hosts: []heartbeat{host(heartbeat{ExpiryMS: 60000})}, age: 60*s - 1, alive: true, quiet: true},
		"gone for a long one":         {hosts: []heartbeat{host(heartbeat{ExpiryMS: 60000})}, age: 60 * s},
		"of a short expiry":           {hosts: []heartbeat{host(heartbeat{ExpiryMS: 1000})}, age: 20*s - 1, alive: true, quiet: true},
		"leaving":                     {hosts: []heartbeat{host(heartbeat{Draining: true})}, age: 20*s - 1, leaving: true},
		"long since leaving":          {hosts: []heartbeat{host(heartbeat{Draining: true})}, age: 20 * s},
		"spare":                       {hosts: []heartbeat{host(heartbeat{Spare: true})}},
		"owner":                       {leases: []Lease{lease("1", 20*s)}, first: 10*s - 1, alive: true},
		"quiet owner":                 {leases: []Lease{lease("1", 20*s)}, first: 10 * s, alive: true, quiet: true},
		"owner for long":              {leases: []Lease{lease("1", 60*s)}, first: 30*s - 1, alive: true},
		"quiet owner for long":        {leases: []Lease{lease("1", 60*s)}, first: 30 * s, alive: true, quiet: true},
		"owner that is gone":          {leases: []Lease{lease("1", 20*s)}, first: 20 * s},
		"one of its leases is old":    {leases: []Lease{lease("1", 20*s), lease("2", 20*s)}, first: 3 * s, second: 15 * s, alive: true},
		"an owner whose lease has it": {hosts: []heartbeat{host(heartbeat{})}, age: s, leases: []Lease{lease("1", 20*s)}, first: 15 * s, alive: true},
		"an owner that leaves":        {hosts: []heartbeat{host(heartbeat{Draining: true})}, leases: []Lease{lease("1", 20*s)}, leaving: true},
	} {
		_, m := member(t, map[string]time.Duration{"p.host.a.1": tt.age, "p.host.b.2": 15 * s, "1": tt.first, "2": tt.second})
		seen := listing{leases: tt.leases, hosts: append(tt.hosts, heartbeat{Host: "b", Incarnation: "2"})}
		v := m.balanceView(seen, tiling{}, m.clock.Now())
		want := balanceView{self: "b/2", hosts: []hostKey{"b/2"}, leases: v.leases}
		if tt.alive {
			want.hosts = []hostKey{"a/1", "b/2"}
		}
		if tt.quiet {
			want.quiet = []hostKey{"a/1"}
		}
		if tt.leaving {
			want.leaving = []hostKey{"a/1"}
		}
		if !reflect.DeepEqual(v, want) || len(v.leases) != len(tt.leases) {
			t.Errorf("%s: %+v, want %+v", name, v, want)
		}
	}
}

func TestOwnerAndHandoffOfALease(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		lease  Lease
		age    time.Duration
		worker bool
		want   balanceLease
	}{
		"held here, whatever is stored": {lease: Lease{Owner: "a", Incarnation: "1", Handoff: "c/3", Previous: "d"}, age: time.Hour, worker: true, want: balanceLease{owner: "b/2", previous: "d"}},
		"lost here":                     {lease: Lease{Owner: "b", Incarnation: "2", Previous: "d", Expiry: 20 * s}, want: balanceLease{previous: "b"}},
		"another's":                     {lease: Lease{Owner: "a", Incarnation: "1", Previous: "d", Expiry: 20 * s}, age: 20*s - 1, want: balanceLease{owner: "a/1", previous: "d"}},
		"of a host that is gone":        {lease: Lease{Owner: "a", Incarnation: "1", Previous: "d", Handoff: "c/3", Expiry: 20 * s}, age: 30*s - 1, want: balanceLease{previous: "a"}},
		"not acquired":                  {lease: Lease{Owner: "a", Incarnation: "1", Expiry: 20 * s}, age: 30 * s, want: balanceLease{previous: "a", waiting: true}},
		"released":                      {lease: Lease{Previous: "d"}, age: 10*s - 1, want: balanceLease{previous: "d"}},
		"passed on":                     {lease: Lease{Previous: "d", Handoff: "c/3"}, age: 10*s - 1, want: balanceLease{previous: "d", handoff: "c/3"}},
		"passed on in vain":             {lease: Lease{Previous: "d", Handoff: "c/3"}, age: 10 * s, want: balanceLease{previous: "d", waiting: true}},
		"released by another product":   {lease: Lease{takenOver: true, Expiry: 20 * s}, age: 20*s - 1, want: balanceLease{handoff: reserved}},
		"released by it long ago":       {lease: Lease{takenOver: true, Expiry: 20 * s}, age: 20 * s, want: balanceLease{waiting: true}},
	} {
		_, m := member(t, map[string]time.Duration{"p..-FF": tt.age, "p..-20": tt.age, "p..20-FF": tt.age})
		tt.lease.ID, tt.want.id = "p..-FF", "p..-FF"
		if tt.worker {
			m.workers.byLease["p..-FF"] = &worker{}
		}
		replayed, pending := tt.lease, tt.lease
		replayed.ID, pending.ID, pending.State = "p..-20", "p..20-FF", LeasePending
		seen := listing{leases: []Lease{pending, replayed, tt.lease}}
		v := m.balanceView(seen, tiling{replaced: map[string][]FeedRange{replayed.ID: nil}}, m.clock.Now())
		if !reflect.DeepEqual(v.leases, []balanceLease{tt.want}) {
			t.Errorf("%s: %+v, want %+v alone", name, v.leases, tt.want)
		}
	}
}

// A duplicate is reported only after it has shown a sign of life.
func TestDuplicateHostIsReportedOnce(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		host, incarnation string
		age               time.Duration
		unchanged         bool // as it was when it was first seen
		reported          bool
	}{
		"a twin":                      {host: "b", incarnation: "3", age: 20*s - 1, reported: true},
		"one that is gone":            {host: "b", incarnation: "3", age: 20 * s},
		"one of before, for all seen": {host: "b", incarnation: "3", unchanged: true},
		"this host":                   {host: "b", incarnation: "2"},
		"another":                     {host: "a", incarnation: "3"},
	} {
		for _, owner := range []bool{false, true} {
			id := fmt.Sprintf("p.host.%s.%s", tt.host, tt.incarnation)
			d, m := member(t, map[string]time.Duration{id: tt.age, "p..-FF": tt.age})
			for id, seen := range m.etags.seen {
				seen.changed = !tt.unchanged
				m.etags.seen[id] = seen
			}
			seen := listing{hosts: []heartbeat{{Host: tt.host, Incarnation: tt.incarnation}}}
			if owner {
				seen = listing{leases: []Lease{{ID: "p..-FF", Owner: tt.host, Incarnation: tt.incarnation}}}
			}
			m.reportDuplicates(seen, m.clock.Now())
			if m.reportDuplicates(seen, m.clock.Now()); tt.reported {
				d.expectEvents(t, name, DuplicateHost{Host: "b", Incarnation: "3"})
			} else {
				d.expectEvents(t, name)
			}
		}
	}
}

// namedFeed is a feed with a name, which counts the requests for it.
type namedFeed struct {
	Feed
	asked int
	err   error
}

func (f *namedFeed) Source(context.Context) (Source, error) {
	f.asked++
	return Source{Database: "db", Container: "c"}, f.err
}

// An unreadable record is refused each time. The container's name is requested until known.
func TestListingClassifiesEachRecord(t *testing.T) {
	d, e := newFaultyStore(t)
	c := e.clock.(*manualClock)
	feed := &namedFeed{err: errTest}
	e.feed, e.ids = feed, recordIDs{}
	l := &lister{env: e}
	if _, err := l.list(t.Context()); !errors.Is(err, errTest) {
		t.Fatalf("of an unknown container: error %v", err)
	}
	feed.err = nil
	ids := recordIDs{prefix: "changefeed_db_c"}
	kept := d.keep(t, Lease{ID: ids.info(), Version: 1, Since: time.Unix(5, 0).UTC()})
	info, err := decodeLease(d.records[kept.ID])
	if err != nil {
		t.Fatal(err)
	}
	lease := d.keep(t, Lease{ID: ids.lease(FullRange()), Version: 1, Token: "-FF", Range: FullRange(), Continuation: `"5"`})
	d.putBody(t, ids.pause(), map[string]string{"id": ids.pause()})
	d.putBody(t, ids.host("b", "2"), map[string]any{"host": "b", "incarnation": "2", "expiryMs": 7})
	d.putBody(t, ids.host("b", "3"), map[string]any{"host": 3})
	d.putBody(t, ids.all()+"other", map[string]string{})
	d.putBody(t, ids.lease(rng("", "x")), []string{})
	look := func(what string, want Lease) (content uint64) {
		t.Helper()
		seen, err := l.list(t.Context())
		hosts := []heartbeat{{Host: "b", Incarnation: "2", ExpiryMS: 7, etag: d.records[ids.host("b", "2")].ETag}}
		if err != nil || !seen.paused || !reflect.DeepEqual(seen.info, &info) || !reflect.DeepEqual(seen.hosts, hosts) || !reflect.DeepEqual(seen.leases, []Lease{want}) {
			t.Errorf("%s: seen %+v, error %v; want %+v", what, seen, err, want)
		}
		if len(seen.refused) != 1 || seen.refused[0].ID != ids.lease(rng("", "x")) || seen.refused[0].Reason == "" {
			t.Errorf("%s: refused %+v", what, seen.refused)
		}
		return seen.content
	}
	content := look("first", lease)
	if look("again", lease) != content {
		t.Error("the hash of the same records is another one")
	}
	if feed.asked != 2 {
		t.Errorf("the feed was asked %d times for its name, want twice, as the first failed", feed.asked)
	}
	lease.Continuation = `"6"`
	if err := lease.replace(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	look("changed", lease)

	seen := c.now // of the lease
	c.now = c.now.Add(5 * time.Second)
	d.fail["list"] = errTest
	if _, err := l.list(t.Context()); !errors.Is(err, errTest) {
		t.Errorf("a store that cannot be listed: error %v", err)
	}
	if since := l.etags.unchangedFor(lease.ID, c.now); since != c.now.Sub(seen) {
		t.Errorf("after a failed listing the lease is unchanged for %s, want 5 s", since)
	}
}

// What is kept of a listing is out of date once any record changes. A failover changes the term without a write.
func TestHashOfAListingChangesWithEachRecord(t *testing.T) {
	observed := func(records ...Record) uint64 {
		var h etagHistory
		h.observe(records, time.Unix(1000, 0))
		return h.content
	}
	a, b := Record{ID: "a", ETag: "1", Term: "7:1"}, Record{ID: "b", ETag: "1", Term: "7:1"}
	written, failed := a, a
	written.ETag, failed.Term = "2", "7:2"
	if observed(a, b) != observed(b, a) {
		t.Error("the order of the records matters")
	}
	all := map[uint64]bool{}
	for _, records := range [][]Record{{a, b}, {written, b}, {failed, b}, {a}, {}} {
		all[observed(records...)] = true
	}
	if len(all) != 5 {
		t.Errorf("%d hashes of five listings", len(all))
	}
}

// slowListing is a store whose listing takes 5 s.
type slowListing struct {
	LeaseStore
	clock *manualClock
}

func (s slowListing) List(ctx context.Context, prefix string) ([]Record, error) {
	s.clock.now = s.clock.now.Add(5 * time.Second)
	return s.LeaseStore.List(ctx, prefix)
}

// The owner may have written during the listing. So it is unchanged since the end of it, not since its beginning.
func TestRecordIsUnchangedSinceTheEndOfItsListing(t *testing.T) {
	d, e := newFaultyStore(t)
	c := e.clock.(*manualClock)
	e.ids = recordIDs{prefix: "changefeed_db_c"}
	lease := d.keep(t, e.leaseOf(FullRange()))
	e.feed, e.store, e.ids = &namedFeed{}, slowListing{d, c}, recordIDs{}
	l := &lister{env: e}
	if seen, err := l.list(t.Context()); err != nil || len(seen.leases) != 1 {
		t.Fatalf("listed %+v, error %v", seen, err)
	}
	if since := l.etags.unchangedFor(lease.ID, c.now); since != 0 {
		t.Errorf("the lease is unchanged for %s, and its listing has just ended", since)
	}
}

// The fields that a drain and a repair need. Errors and what is done ahead may be long.
func TestKeptLeasesAreSmall(t *testing.T) {
	const leases = 10_000
	seen := listing{info: &Lease{}, hosts: []heartbeat{{Host: "b"}}, content: 1}
	for i := range leases {
		l := Lease{
			ID: fmt.Sprintf("account.documents.azure.com_db_c..%032X-%032X", i<<16, (i+1)<<16), ETag: fmt.Sprint("etag", i),
			Range: rng(fmt.Sprintf("%032X", i<<16), fmt.Sprintf("%032X", (i+1)<<16)), State: LeaseLive,
			Owner: fmt.Sprint("relay-", i%1000), Incarnation: fmt.Sprintf("%016x", uint64(i%1000)*0x9E3779B97F4A7C15), Expiry: time.Minute,
			Epoch: int64(i % 7), History: "h", Continuation: fmt.Sprintf("%q", fmt.Sprint(1_000_000+i*7919%100_000)), LSN: int64(1_000_000 + i*7919%100_000),
			ChangeTime: 1_700_000_000, Reached: 1_200_000, Error: "x", Ahead: Ahead{LSN: 5}, Timestamp: time.Unix(int64(i), 0),
		}
		seen.leases = append(seen.leases, l)
	}
	l := &seen.leases[0]
	l.State, l.Handoff, l.Previous, l.Since, l.Term, l.Lost, l.takenOver, l.loaded = LeaseSplit, "c/1", "d", time.Unix(9, 0).UTC(), "t", 4, true, "t2"
	var k kept
	k.keep(seen)
	if size := len(k.leases.many) / leases; size > 100 || size == 0 {
		t.Errorf("%d bytes a lease", size)
	}
	for i := range seen.leases {
		l := &seen.leases[i]
		l.ETag, l.Error, l.Ahead, l.Timestamp = "", "", Ahead{}, time.Time{}
	}
	if got := k.listing(); !k.initialized || !reflect.DeepEqual(got.leases, seen.leases) || !reflect.DeepEqual(got.hosts, seen.hosts) {
		t.Errorf("kept %+v, first lease\n%+v\nwant\n%+v", got.hosts, got.leases[0], seen.leases[0])
	}
	seen.leases[0].Owner = "z"
	if k.keep(seen); k.listing().leases[0].Owner == "z" {
		t.Error("a listing with the same records was packed again")
	}
	few := seen.leases[:3]
	if got := packLeases(few).unpack(); !reflect.DeepEqual(got, few) {
		t.Errorf("three leases are kept as %+v", got)
	}
	seen.content++
	if k.keep(seen); k.listing().leases[0].Owner != "z" {
		t.Error("a listing with other records was not kept")
	}
}
