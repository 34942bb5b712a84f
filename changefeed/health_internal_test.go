package changefeed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// owned returns a delivery of a lease this host owns, and its clock.
func (e *env) owned(t *testing.T, l Lease) (*delivery, *manualClock) {
	t.Helper()
	c := e.clock.(*manualClock)
	_, f := newFence(t.Context(), c.watch(), c.watch().read(), e.opts.Expiry-e.opts.margin())
	return newDelivery(t.Context(), e, newKeeper(e, l, f, c.now, newSignal()), &atomic.Int64{}), c
}

// A first failure is stored soon, later ones with the next renewal. It is reported once it
// has lasted, and so is its end once both sources work.
func TestTroubleIsRecordedReportedAndCleared(t *testing.T) {
	board, e := newFaultyStore(t)
	lease := e.leaseOf(FullRange())
	lease.Epoch = 3
	d, c := e.owned(t, lease)
	began := c.now
	var unread time.Duration
	expect := func(what string, soon bool, health Health, failures int, text string, since time.Time) {
		t.Helper()
		l := d.keeper.snapshot()
		if l.Health != health || l.Failures != failures || l.Error != text || !l.Failing.Equal(since) || l.UnreadFor != unread {
			t.Errorf("%s: the lease has %q, %d failures, %q since %s, unread for %s", what, l.Health, l.Failures, l.Error, l.Failing, l.UnreadFor)
		}
		if hurry := d.keeper.soon == d.keeper.version; hurry != soon {
			t.Errorf("%s: to be written soon: %t", what, hurry)
		}
	}
	other, last := errors.New("other"), fmt.Errorf("%s: %w", strings.Repeat("x", 600), ErrPermanent)
	d.noteFailure(ofReads, errTest)
	expect("first", true, Unread, 1, errTest.Error(), began)
	c.now = c.now.Add(e.opts.StuckAfter - 1)
	d.noteFailure(ofHandler, other)
	expect("second", false, Retrying, 2, "other", began)
	board.expectEvents(t, "not stuck yet")
	c.now = c.now.Add(1)
	d.noteFailure(ofReads, last)
	unread = e.opts.StuckAfter
	expect("third", true, Unread, 3, last.Error()[:maxErrorText], began)
	board.expectEvents(t, "stuck", RangeStuck{LeaseRef: lease.ref(), Failures: 3, Since: began, Err: last})
	d.noteFailure(ofReads, other)
	expect("fourth", false, Unread, 4, "other", began)
	d.noteSuccess(ofReads)
	board.expectEvents(t, "the handler still fails")
	unread = 0
	expect("read again", false, Retrying, 4, "other", began)
	d.noteSuccess(ofHandler)
	expect("well", true, Healthy, 0, "", time.Time{})
	board.expectEvents(t, "well", RangeRecovered{lease.ref()})
	d.noteSuccess(ofHandler)
	board.expectEvents(t, "still well")
	c.now = c.now.Add(time.Second)
	d.noteFailure(ofReads, errTest)
	expect("again", true, Unread, 1, errTest.Error(), c.now)
	d.noteSuccess(ofReads)
	unread = 45 * time.Second
	d.due = c.now.Add(-unread) // trouble begins with the first read without a reply, not with its report
	d.noteFailure(ofReads, errTest)
	expect("without a reply", true, Unread, 1, errTest.Error(), d.due)
	d.due = time.Time{}
	d.markStopped(other)
	d.noteFailure(ofReads, errTest)
	if l := d.keeper.snapshot(); l.Health != Stopped {
		t.Errorf("a read that fails in a stopped range makes it %q", l.Health)
	}
}

func TestSessionInheritsTrouble(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	ours := trouble{of: ofHandler, since: now.Add(-time.Hour), failures: 9, stuck: true}
	for name, tt := range map[string]struct {
		lease Lease
		want  trouble
	}{
		"it failed":                     {Lease{Health: Retrying, Failing: now.Add(-30 * time.Second), Failures: 3}, trouble{of: ofReads | ofHandler, since: now.Add(-30 * time.Second), failures: 3}},
		"it was not read":               {Lease{Health: Retrying, Failing: now.Add(-time.Hour), UnreadFor: time.Minute, Failures: 3}, trouble{of: ofReads | ofHandler, since: now.Add(-time.Hour), unread: now.Add(-time.Minute), failures: 3}},
		"since when is not known":       {Lease{Health: Retrying, Failures: 3}, trouble{of: ofReads | ofHandler, since: now, failures: 3}},
		"by a clock that is ahead":      {Lease{Health: Stopped, Failing: now.Add(time.Hour), Failures: 1}, trouble{of: ofReads | ofHandler, since: now, failures: 1}},
		"an operator wants another try": {Lease{}, trouble{of: ofHandler}},
	} {
		_, e := newFaultyStore(t)
		d, _ := e.owned(t, tt.lease)
		d.trouble = ours
		if d.inheritTrouble(); d.trouble != tt.want {
			t.Errorf("%s: %+v, want %+v", name, d.trouble, tt.want)
		}
	}
}

func TestPageUpdatesLag(t *testing.T) {
	before := lagState{endLSN: 8, readLSN: 6, lastTS: 60, err: errTest}
	for name, tt := range map[string]struct {
		page Page
		want lagState
	}{
		"nothing":                    {Page{}, lagState{known: true, endLSN: 8, readLSN: 6, lastTS: 60}},
		"items":                      {Page{Items: []Item{{LSN: 7, Timestamp: 70}}}, lagState{known: true, endLSN: 8, readLSN: 7, lastTS: 70}},
		"items behind the end known": {Page{Items: []Item{{LSN: 9, Timestamp: 90}}}, lagState{known: true, endLSN: 9, readLSN: 9, lastTS: 90}},
		"an end":                     {Page{EndLSN: 10}, lagState{known: true, endLSN: 10, readLSN: 6, lastTS: 60}},
		"the end":                    {Page{EndLSN: 10, CaughtUp: true}, lagState{known: true, endLSN: 10, readLSN: 10, lastTS: 60, caughtUp: true}},
		"the end after a failover":   {Page{Term: "2", EndLSN: 7, CaughtUp: true}, lagState{known: true, term: "2", endLSN: 7, readLSN: 7, lastTS: 60, caughtUp: true}},
	} {
		got := before
		if got.read(&tt.page); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// The lag is unknown if no more changes are known to exist.
func TestLagBetweenSessions(t *testing.T) {
	more := lagState{known: true, endLSN: 10, readLSN: 6, lastTS: 940}
	with := func(edit func(*lagState)) lagState { s := more; edit(&s); return s }
	type figures struct {
		transactions int64
		age          time.Duration
		known        bool
	}
	for name, tt := range map[string]struct {
		state lagState
		want  figures
	}{
		"more is there":                {more, figures{4, time.Minute, true}},
		"all was read":                 {with(func(s *lagState) { s.readLSN = 10 }), figures{}},
		"caught up":                    {with(func(s *lagState) { s.caughtUp = true }), figures{}},
		"by a clock that is behind":    {with(func(s *lagState) { s.lastTS = 2000 }), figures{4, 0, true}},
		"nothing is known":             {lagState{}, figures{}},
		"it cannot be read now":        {with(func(s *lagState) { s.err = errTest }), figures{4, time.Minute, false}},
		"only the checkpoint is known": {with(func(s *lagState) { s.lastTS = 0 }), figures{4, 100 * time.Second, true}},
	} {
		_, e := newFaultyStore(t)
		lease := e.leaseOf(FullRange())
		lease.ChangeTime = 900 // of the checkpoint, which is before the last read
		d, _ := e.owned(t, lease)
		d.lag = tt.state
		got := d.lagIn(nil)
		if (figures{got.Transactions, got.Age, got.Known}) != tt.want || got.ID != "p..-FF" {
			t.Errorf("%s: %d of %s, known %t, want %+v", name, got.Transactions, got.Age, got.Known, tt.want)
		}
	}
	if n := transactions(struct {
		Feed
		Sparse
	}{}, 400); n != 1 {
		t.Errorf("400 LSNs of a feed whose LSNs have gaps are %d transactions, want one", n)
	}
}

// splitFeed is a feed whose range has split into parts with changes of different ages.
type splitFeed struct{ Feed }

func (splitFeed) Read(_ context.Context, req ReadRequest) (*Page, error) {
	children := []FeedRange{rng("", "55"), rng("55", "AA"), rng("AA", "FF")}
	for i, child := range children {
		if req.Range.Equal(child) {
			return &Page{Items: []Item{{LSN: 5, Timestamp: []int64{500, 100, 300}[i]}}, EndLSN: 6}, nil
		}
	}
	return nil, &SplitError{Range: req.Range, Children: children}
}

func TestAgeOfSplitRangeIsThatOfItsOldestPart(t *testing.T) {
	var lag RangeLag
	now := func() time.Time { return time.Unix(1000, 0) }
	if err := lag.measureFrom(t.Context(), splitFeed{}, now, RangeToken{Range: FullRange()}); err != nil || lag.Age != 900*time.Second || lag.Transactions != 6 {
		t.Errorf("%+v, %v; want 900 s and 6 transactions", lag, err)
	}
}

// delayedPart is a splitFeed whose second part once ends early.
type delayedPart struct {
	splitFeed
	delayed bool
}

func (f *delayedPart) Read(ctx context.Context, req ReadRequest) (*Page, error) {
	if req.Range.Min == "55" && !f.delayed {
		f.delayed = true
		return nil, &AheadError{Position: 4, End: 3}
	}
	return f.splitFeed.Read(ctx, req)
}

func TestRepeatedMeasurementCountsEachPartOnce(t *testing.T) {
	lag := RangeLag{Lease: Lease{Range: FullRange()}}
	err := lag.measure(t.Context(), &delayedPart{}, func() time.Time { return time.Unix(1000, 0) })
	if err != nil || !lag.Known || lag.Transactions != 6 {
		t.Errorf("%+v, %v; want 6 transactions", lag, err)
	}
}

func TestEndLSNIsKeptIfReplyHasNone(t *testing.T) {
	var s lagState
	s.read(&Page{EndLSN: 10, Items: []Item{{LSN: 4, Timestamp: 40}}})
	s.read(&Page{Items: []Item{{LSN: 6, Timestamp: 60}}})
	if s.endLSN != 10 || s.readLSN != 6 || s.lastTS != 60 {
		t.Errorf("%+v, want the end 10, read up to 6", s)
	}
}

func TestTermsOfDifferentRangesAreNotCompared(t *testing.T) {
	for _, tt := range []struct {
		before, now string
		want        bool
	}{
		{"", "0:1", false},
		{"0:1", "", false},
		{"0:1", "0:1", false},
		{"0:1", "0:2", true},
		{"0:1", "1:2", false},
		{"0:1", "10:1", false},
	} {
		if got := termChanged(tt.before, tt.now); got != tt.want {
			t.Errorf("%q after %q: changed %t", tt.now, tt.before, got)
		}
	}
}

// An error of a read that may pass by itself makes no range stuck, however long it lasts. Silence does, because a read
// that never ends has no later one.
func TestSilentReadsMakeTheRangeStuck(t *testing.T) {
	for err, want := range map[error]bool{errTest: false, errSilent: true, context.DeadlineExceeded: true, ErrPermanent: true} {
		_, e := newFaultyStore(t)
		d, c := e.owned(t, e.leaseOf(FullRange()))
		stuck := 0
		e.obs.RangeStuck = func(RangeStuck) { stuck++ }
		for range 3 {
			d.noteFailure(ofReads, err)
			c.now = c.now.Add(e.opts.StuckAfter)
		}
		if got := stuck > 0; got != want || stuck > 1 {
			t.Errorf("%v: reported %d times", err, stuck)
		}
	}
}

// An observer may ask for the lag of the range that is stuck.
func TestStuckRangeIsReportedWithoutALock(t *testing.T) {
	_, e := newFaultyStore(t)
	d, c := e.owned(t, e.leaseOf(FullRange()))
	reported := 0
	e.obs.RangeStuck = func(RangeStuck) {
		reported++
		if !d.state.TryLock() {
			t.Error("called with the lock that the lag needs")
			return
		}
		d.state.Unlock()
	}
	d.noteFailure(ofHandler, errTest)
	c.now = c.now.Add(e.opts.StuckAfter)
	d.noteFailure(ofHandler, errTest)
	if reported != 1 {
		t.Errorf("reported %d times, want once", reported)
	}
}
