package changefeed

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// works makes the env's host the owner of a lease.
func (r *run) works(t *testing.T, l Lease) *worker {
	t.Helper()
	d, _ := r.owned(t, l)
	w := &worker{delivery: d, kick: newSignal()}
	r.workers.byLease[l.ID] = w
	return w
}

// In particular, a failed listing is not treated as a listing of an empty store.
func TestFailedListingChangesNothing(t *testing.T) {
	d, e := newFaultyStore(t)
	e.feed = &physical{ranges: []FeedRange{FullRange()}}
	d.fail["list"] = errTest
	r := newRun(e)
	if _, err := r.cycle(t.Context()); !errors.Is(err, errTest) || len(d.records) != 0 || r.gaps.infoGone != (time.Time{}) {
		t.Errorf("error %v, %d records", err, len(d.records))
	}
}

// Every cycle is reported.
func TestHostAlonePollsRarelyIfLeasesAreComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		beside FeedRange // a lease of this range is there too
		state  LeaseState
		gap    bool
		paused bool
		rarely bool
	}{
		"all is well":     {rarely: true},
		"a gap":           {gap: true},
		"a pause":         {paused: true},
		"a record beside": {beside: rng("", "10"), state: LeasePending},
	} {
		d, e := newFaultyStore(t)
		e.feed = &physical{}
		r := newRun(e)
		var reported []Balanced
		r.obs.Balanced = func(b Balanced) { reported = append(reported, b) }
		d.keep(t, Lease{ID: "p.info", Version: 1, State: LeaseDone})
		l := e.leaseOf(FullRange())
		if tt.gap {
			l = e.leaseOf(rng("", "20"))
		}
		l.Owner, l.Incarnation, l.Expiry, l.Epoch = "a", r.incarnation, r.opts.Expiry, 1
		r.works(t, d.keep(t, l))
		if tt.beside != (FeedRange{}) {
			other := e.leaseOf(tt.beside)
			other.State, other.Parent = tt.state, l.ID
			d.keep(t, other)
		}
		if tt.paused {
			d.putBody(t, "p.pause", map[string]string{})
		}
		for n := range 2 {
			pause, err := r.cycle(t.Context())
			low, high := r.opts.AcquireFast*4/5, r.opts.AcquireFast*6/5 // something has changed: the first cycle
			if n == 1 {
				low, high = r.opts.Acquire*4/5, r.opts.Acquire*6/5
			}
			if n == 1 && tt.rarely {
				low, high = 2*r.opts.Expiry*4/5, 2*r.opts.Expiry*6/5
			}
			if err != nil || pause < low || pause > high {
				t.Errorf("%s, cycle %d: the next one in %s, error %v; want it in %s to %s", name, n, pause, err, low, high)
			}
			r.interval.fastUntil = time.Time{}
		}
		if want := (Balanced{Hosts: 1, Leases: 1, Owned: 1}); !reflect.DeepEqual(reported, []Balanced{want, want}) {
			t.Errorf("%s: reported %+v, want %+v twice", name, reported, want)
		}
	}
}

// A listing that shows a write of another host makes the worker check the record.
func TestWorkerReconcilesForeignWrites(t *testing.T) {
	for name, tt := range map[string]struct {
		edit   func(l *Lease)
		checks bool
	}{
		"nothing":                    {func(*Lease) {}, false},
		"an older listing":           {func(l *Lease) { l.ETag = "old" }, false},
		"a request":                  {func(l *Lease) { l.ETag, l.Request.Release = "new", true }, true},
		"another owner":              {func(l *Lease) { l.ETag, l.Owner = "new", "b" }, true},
		"a request already known of": {func(l *Lease) { l.Request.Release = true }, false},
	} {
		_, e := newFaultyStore(t)
		r := newRun(e)
		l := e.leaseOf(FullRange())
		l.Owner, l.Incarnation, l.ETag = "a", r.incarnation, "e"
		w := r.works(t, l)
		tt.edit(&l)
		r.forwardRequests(listing{leases: []Lease{l, e.leaseOf(rng("", "20"))}})
		if checks := w.keeper.urgent > 0; checks != tt.checks {
			t.Errorf("%s: it checks %t", name, checks)
		}
	}
}

// Failed deletes are repeated once in a while.
func TestAbandonedSplitsAreCompletedAndSwept(t *testing.T) {
	d, e := newFaultyStore(t)
	r := newRun(e)
	split, done := e.leaseOf(rng("", "20")), e.leaseOf(rng("20", "FF"))
	split.replaceBy([]FeedRange{rng("", "10"), rng("10", "20")})
	done.State = LeaseDone
	split, done = d.keep(t, split), d.keep(t, done)
	seen := listing{leases: []Lease{split, done}}
	r.works(t, split)
	d.fail["delete"] = errTest
	failed := LeaseError{Lease: done.ID, Op: "delete", Err: errTest}
	for n, later := range []time.Duration{0, 30*r.opts.Expiry - 1, 1} {
		c := e.clock.(*manualClock)
		c.now = c.now.Add(later)
		if r.completeSplits(t.Context(), seen); n == 1 {
			d.expectEvents(t, "tried just now")
		} else {
			d.expectEvents(t, "tried", failed)
		}
	}
	if got := d.stored(t, split.ID); got.State != LeaseSplit || len(d.records) != 2 {
		t.Errorf("a split its worker is at: %+v, of %d records", got, len(d.records))
	}
	d.fail = map[string]error{}
	delete(r.workers.byLease, split.ID)
	r.completeSplits(t.Context(), seen)
	if _, there := d.records[split.ID]; there || d.stored(t, "p..10-20").ID == "" {
		t.Error("the split is not completed")
	}
}

// The previous owner is reported.
func TestAcquisitionWritesOwnerAndAppliesRequests(t *testing.T) {
	long := time.Unix(500, 0).UTC()
	rewind := &RangeToken{Range: FullRange(), Continuation: `"2"`}
	failed := Ahead{LSN: 9, Held: []HeldKey{{LSN: 6, ID: "a", Refusals: 2}}}
	for name, tt := range map[string]struct {
		request  Request
		health   Health
		want     Lease // without the constant fields
		fails    error
		reported error
	}{
		"nothing was asked":      {want: Lease{Continuation: `"5"`, LSN: 5, Ahead: failed}},
		"a rewind":               {request: Request{Rewind: rewind}, want: Lease{Continuation: `"2"`}},
		"a retry":                {request: Request{Retry: true}, health: Stopped, want: Lease{Continuation: `"5"`, LSN: 5, Ahead: Ahead{LSN: 9, Held: []HeldKey{{LSN: 6, ID: "a"}}}}},
		"a release, and a pause": {request: Request{Release: true, Paused: true}, want: Lease{Continuation: `"5"`, LSN: 5, Ahead: failed, Request: Request{Paused: true}}},
		"it was stopped":         {health: Stopped, want: Lease{Continuation: `"5"`, LSN: 5, Ahead: failed, Health: Retrying}},
		"another was first":      {fails: ErrETagMismatch},
		"the store is away":      {fails: errTest, reported: errTest},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, e := newFaultyStore(t)
			e.feed, e.clock, e.opts.Now = endlessFeed{}, systemClock{}, time.Now
			r := newRun(e)
			l := e.leaseOf(FullRange())
			l.Owner, l.Incarnation, l.Expiry, l.Epoch, l.Timestamp = "b", "2", time.Hour, 4, long
			l.Continuation, l.LSN, l.Request, l.Health, l.Ahead, l.Handoff = `"5"`, 5, tt.request, tt.health, failed, "a/1"
			l = d.keep(t, l)
			if tt.fails != nil {
				d.fail["replace"] = tt.fails
			}
			r.acquire(t.Context(), listing{leases: []Lease{l}}, []string{l.ID})
			if tt.fails != nil {
				if len(r.workers.all()) != 0 {
					t.Errorf("%s: it works on it", name)
				}
				if tt.reported == nil {
					d.expectEvents(t, name)
				} else {
					d.expectEvents(t, name, LeaseError{Lease: l.ID, Op: "acquire", Err: tt.reported})
				}
				ctx, end := context.WithCancel(t.Context())
				end()
				r.acquire(ctx, listing{leases: []Lease{l}}, []string{l.ID})
				d.expectEvents(t, name+", and the host stops")
				return
			}
			want := e.leaseOf(FullRange())
			want.Owner, want.Incarnation, want.Expiry, want.Epoch, want.Timestamp = "a", r.incarnation, r.opts.Expiry, 5, time.Now().UTC().Round(0)
			want.Previous, want.LastRead, want.Backlog = "b", long, tt.request.Rewind != nil
			want.Continuation, want.LSN, want.Request, want.Health, want.Ahead = tt.want.Continuation, tt.want.LSN, tt.want.Request, tt.want.Health, tt.want.Ahead
			synctest.Wait() // the worker reads, and has nothing to write
			d.expect(t, name, want)
			d.expectEvents(t, name, LeaseAcquired{LeaseRef: want.ref(), Continuation: want.Continuation, From: "b", LastRead: long})
			if r.workers.of(l.ID) == nil {
				t.Errorf("%s: no worker has it", name)
			}
			r.workers.drain(nil, e.clock.Now())
		})
	}
}

// The set of hosts, of owners, or of leaving hosts has changed.
func TestChangesMakeCyclesFast(t *testing.T) {
	_, e := newFaultyStore(t)
	p := &interval{env: e}
	at := e.clock.Now()
	view := balanceView{hosts: []hostKey{"a/1"}, leases: []balanceLease{{id: "1"}}}
	for name, edit := range map[string]func(){
		"a host":     func() { view.hosts = append(view.hosts, "b/1") },
		"one leaves": func() { view.leaving = append(view.leaving, "b/1") },
		"an owner":   func() { view.leases[0].owner += "x" },
	} {
		edit()
		p.observe(view, at)
		if !p.changing(at.Add(fastFor-1)) || p.changing(at.Add(fastFor)) {
			t.Errorf("%s: fast until %s, want for a minute from %s", name, p.fastUntil, at)
		}
		p.observe(view, at.Add(time.Second))
		if at = at.Add(time.Hour); p.changing(at.Add(-time.Hour + fastFor)) {
			t.Errorf("%s: the same again is no change", name)
		}
	}
}

// A large fleet lists less often while it changes, but at least every Acquire.
func TestFastCyclesSlowDownInALargeFleet(t *testing.T) {
	for _, tt := range []struct {
		hosts, leases int
		want          time.Duration
	}{{1, 1, 500 * time.Millisecond}, {500, 1000, 500 * time.Millisecond}, {1000, 2000, 2 * time.Second}, {1000, 10_000, 5 * time.Second}, {100_000, 1_000_000, 5 * time.Second}} {
		_, e := newFaultyStore(t)
		p := &interval{env: e, fastUntil: e.clock.Now().Add(time.Minute), hosts: make([]hostKey, tt.hosts), leases: tt.leases}
		if d := p.next(listing{}, &etagHistory{}, false); d < tt.want*8/10 || d > tt.want*12/10 {
			t.Errorf("%d hosts and %d leases: the next cycle in %s, want about %s", tt.hosts, tt.leases, d, tt.want)
		}
	}
}

// A free lease does not shorten the pause.
func TestNextCycleIsJitteredAndEndsAtExpiry(t *testing.T) {
	_, e := newFaultyStore(t)
	p := &interval{env: e}
	now := e.clock.Now()
	other, mine, free := e.leaseOf(rng("", "20")), e.leaseOf(rng("20", "30")), e.leaseOf(rng("30", "FF"))
	other.Owner, other.Incarnation, other.Expiry = "b", "2", e.opts.Expiry
	mine.Owner, mine.Incarnation, mine.Expiry = "a", "1", e.opts.Expiry
	for name, tt := range map[string]struct {
		age       time.Duration
		low, high time.Duration
	}{
		"far off":                {0, 4 * time.Second, 6 * time.Second},
		"about to expire":        {e.opts.Expiry - time.Second, time.Second, time.Second},
		"expired":                {e.opts.Expiry, 4 * time.Second, 6 * time.Second},
		"expired in this moment": {e.opts.Expiry - 1, time.Millisecond, time.Millisecond},
	} {
		etags := &etagHistory{}
		etags.observe([]Record{other.encode(), mine.encode(), free.encode()}, now.Add(-tt.age))
		all := map[time.Duration]bool{}
		for range 20 {
			d := p.next(listing{leases: []Lease{other, mine, free}}, etags, false)
			if all[d] = true; d < tt.low || d > tt.high {
				t.Errorf("%s: the next cycle in %s", name, d)
			}
		}
		if tt.low != tt.high && len(all) < 2 {
			t.Errorf("%s: all cycles are in step", name)
		}
	}
}

func TestSweepScheduleSpacesAttempts(t *testing.T) {
	s, at := sweepSchedule{}, time.Unix(1000, 0)
	for later, want := range []bool{true, false, true, false} {
		if got := s.tryNow("a", at.Add(time.Duration(later)*time.Second), 2*time.Second); got != want {
			t.Errorf("after %d s: %t", later, got)
		}
	}
}

// The container failed over while a request waited for the next owner. The request forgets the term of the
// position, and the progress of keys belongs to another history all the same.
func TestRequestDoesNotHideAFailover(t *testing.T) {
	d, e := newFaultyStore(t)
	r := newRun(e)
	l := e.leaseOf(FullRange())
	l.Term, l.History, l.Request.Retry = "7:1", "h", true
	l = d.keep(t, l)
	l.loaded = "7:2"
	d.lose = true // so that no worker starts
	r.acquireOne(t.Context(), l)
	if got := d.stored(t, l.ID); got.Owner != "a" || got.Request.Retry || got.Term != "" || got.History == "h" || got.History == "" {
		t.Errorf("acquired %+v, want a new history", got)
	}
}
