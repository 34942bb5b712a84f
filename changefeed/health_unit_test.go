package changefeed

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// owned is a delivery of a lease this host owns, and its clock.
func (e *env) owned(t *testing.T, l Lease) (*delivery, *manualClock) {
	t.Helper()
	c := e.clock.(*manualClock)
	_, f := newFence(t.Context(), c.watch(), c.watch().read(), e.opts.Expiry-e.opts.margin())
	return newDelivery(t.Context(), e, newKeeper(e, l, f, c.now, newSignal()), &atomic.Int64{}), c
}

// What fails is on the lease at once, and later when it is written anyway; it is told once
// it has lasted, with what failed last, and so is its end, once all sources are well.
func TestTroubleIsNotedToldAndForgotten(t *testing.T) {
	board, e := newDesk(t)
	lease := e.leaseOf(FullRange())
	lease.Epoch = 3
	d, c := e.owned(t, lease)
	began := c.now
	expect := func(what string, soon bool, health Health, failures int, text string, since time.Time) {
		t.Helper()
		l := d.keeper.snapshot()
		if l.Health != health || l.Failures != failures || l.Error != text || !l.Failing.Equal(since) {
			t.Errorf("%s: the lease tells %q, %d failures, %q since %s", what, l.Health, l.Failures, l.Error, l.Failing)
		}
		if hurry := d.keeper.soon == d.keeper.version; hurry != soon {
			t.Errorf("%s: to be written soon: %t", what, hurry)
		}
	}
	other, last := errors.New("other"), errors.New(strings.Repeat("x", 600))
	d.noteFailure(ofReads, errTest)
	expect("first", true, Retrying, 1, errTest.Error(), began)
	c.now = c.now.Add(e.opts.StuckAfter - 1)
	d.noteFailure(ofHandler, other)
	expect("second", false, Retrying, 2, "other", began)
	board.expectTold(t, "not stuck yet")
	c.now = c.now.Add(1)
	d.noteFailure(ofReads, last)
	expect("third", true, Retrying, 3, last.Error()[:maxErrorText], began)
	board.expectTold(t, "stuck", RangeStuck{LeaseRef: lease.ref(), Failures: 3, Since: began, Err: last})
	d.noteFailure(ofReads, other)
	expect("fourth", false, Retrying, 4, "other", began)
	d.noteSuccess(ofReads)
	board.expectTold(t, "the handler still fails")
	d.noteSuccess(ofHandler)
	expect("well", true, Healthy, 0, "", time.Time{})
	board.expectTold(t, "well", RangeRecovered{lease.ref()})
	d.noteSuccess(ofHandler)
	board.expectTold(t, "still well")
	c.now = c.now.Add(time.Second)
	d.noteFailure(ofReads, errTest)
	expect("anew", true, Retrying, 1, errTest.Error(), c.now)
	d.markStopped(other)
	d.noteFailure(ofReads, errTest)
	if l := d.keeper.snapshot(); l.Health != Stopped {
		t.Errorf("a read that fails in a stopped range makes it %q", l.Health)
	}
}

// A new session counts on from what its lease tells of the one before.
func TestTroubleIsInherited(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	ours := trouble{of: ofHandler, since: now.Add(-time.Hour), failures: 9, stuck: true}
	for name, tt := range map[string]struct {
		lease Lease
		want  trouble
	}{
		"it failed":                     {Lease{Health: Retrying, Failing: now.Add(-30 * time.Second), Failures: 3}, trouble{of: ofReads | ofHandler, since: now.Add(-30 * time.Second), failures: 3}},
		"since when is not known":       {Lease{Health: Retrying, Failures: 3}, trouble{of: ofReads | ofHandler, since: now, failures: 3}},
		"by a clock that is ahead":      {Lease{Health: Stopped, Failing: now.Add(time.Hour), Failures: 1}, trouble{of: ofReads | ofHandler, since: now, failures: 1}},
		"an operator wants another try": {Lease{}, trouble{of: ofHandler}},
	} {
		_, e := newDesk(t)
		d, _ := e.owned(t, tt.lease)
		d.trouble = ours
		if d.inheritTrouble(); d.trouble != tt.want {
			t.Errorf("%s: %+v, want %+v", name, d.trouble, tt.want)
		}
	}
}

// What a page tells of a range: how far it was read, and how far it goes.
func TestWhatAPageTellsOfTheLag(t *testing.T) {
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
	} {
		got := before
		if got.read(&tt.page); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// The lag between two sessions is what is known to lie behind the last item read, and not
// known if nothing is.
func TestTheLagBetweenSessions(t *testing.T) {
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
		"more is there":             {more, figures{4, time.Minute, true}},
		"all was read":              {with(func(s *lagState) { s.readLSN = 10 }), figures{}},
		"caught up":                 {with(func(s *lagState) { s.caughtUp = true }), figures{}},
		"by a clock that is behind": {with(func(s *lagState) { s.lastTS = 2000 }), figures{4, 0, true}},
		"nothing is known":          {lagState{}, figures{}},
		"it cannot be read now":     {with(func(s *lagState) { s.err = errTest }), figures{4, time.Minute, false}},
	} {
		_, e := newDesk(t)
		d, _ := e.owned(t, e.leaseOf(FullRange()))
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
