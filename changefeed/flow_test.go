package changefeed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// newTestFlow returns a flow of an owned lease whose record is not written; in a bubble.
func newTestFlow(t *testing.T, o *Options, h Handler) *flow {
	t.Helper()
	_, e := newMapStore(t)
	o.Expiry = 1000 * time.Hour
	opts, err := o.resolve(h)
	if err != nil {
		t.Fatal(err)
	}
	e.opts, e.obs, e.clock, e.handler = opts, opts.Observer, opts.Clock, h
	c := clocks{clock: e.clock, wall: e.opts.Now}
	ctx, fence := newFence(t.Context(), c, c.read(), e.opts.Expiry)
	t.Cleanup(func() { fence.revoke(ErrLeaseLost) })
	lease := Lease{ID: "p..-FF", Version: 1, Token: "-FF", Range: FullRange(), Owner: "a", Incarnation: "1", Epoch: 1}
	return newFlow(newDelivery(ctx, e, newKeeper(e, lease, fence, e.clock.Now(), newSignal()), &atomic.Int64{}))
}

// A stop or a drain is the cause, and the lease keeps its previous cause.
func TestFailureAfterStopIsNotReported(t *testing.T) {
	for name, end := range map[string]func(f *flow){
		"":        func(*flow) {},
		"drained": func(f *flow) { f.close() },
		"stopped": func(f *flow) { f.halt() },
		"lost":    func(f *flow) { f.keeper.fence.revoke(ErrLeaseLost) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
			f.noteFailure(ofReads, errors.New("the cause"))
			end(f)
			f.report(errors.New("another"))
			want := "the cause"
			if name == "" {
				want = "another"
			}
			if l := f.keeper.snapshot(); l.Error != want {
				t.Errorf("%q: the lease has %q, want %q", name, l.Error, want)
			}
		})
	}
}

// One of two documents of a transaction and a key was refused in a former session.
func TestRefusalsAreThoseOfOneDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
		f.past = newPast(Ahead{Held: []HeldKey{{Key: hashOf([]byte("k")), LSN: 5, ID: "b", Refusals: 3}}}, false)
		page := &Page{Items: []Item{{LSN: 5, Key: []byte("k"), Raw: []byte(`{"id":"a"}`)}, {LSN: 5, Key: []byte("k"), Raw: []byte(`{"id":"b"}`)}}}
		p, h := f.window.add(page, 0, 5, 0), &heldKey{key: "k", hash: hashOf([]byte("k"))}
		for i := range page.Items {
			f.hold(h, p, &page.Items[i], verdict{})
		}
		if a, b := h.items[0].refusals, h.items[1].refusals; a != 0 || b != 3 {
			t.Errorf("document a has %d refusals, b has %d; want 0 and 3", a, b)
		}
	})
}

// Dropped pages are read again from their oldest change on.
func TestDroppedPagesCountAsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, dropped := range []bool{false, true} {
			f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
			now := time.Now()
			page := &Page{EndLSN: 9, Items: []Item{{LSN: 7, Timestamp: now.Unix()}, {LSN: 9, Timestamp: now.Unix()}}}
			f.pageRead(page, now, now)
			if p := f.window.add(page, 0, 9, 0); !dropped {
				f.window.finish(p, 2)
			}
			time.Sleep(time.Minute)
			f.close()
			want := RangeLag{Read: now, Unknown: UnknownStarting} // it is not read now
			if dropped {
				want = RangeLag{Read: now, Known: true, Transactions: 3, Age: time.Since(now.Truncate(time.Second)), Oldest: now.Truncate(time.Second)}
			}
			got := f.lagIn(nil)
			if got.Lease, got.Oldest = (Lease{}), got.Oldest.UTC(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("dropped %t: %+v, want %+v", dropped, got, want)
			}
		}
	})
}

// A refusal comes before a waiting answer, and any answer before none.
func TestOutcomeIsFirstAnswerThatIsNotDone(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	waits, waits2 := verdict{kind: waiting, err: first}, verdict{kind: waiting, err: second}
	refuses, refuses2 := verdict{kind: refused, err: first}, verdict{kind: refused, err: second}
	failed, silent := verdict{err: first}, verdict{err: errUnanswered}
	for name, c := range map[string]struct {
		verdicts []verdict
		err      error
		blamed   int
		refused  bool
	}{
		"failed":                       {[]verdict{failed, failed}, first, 0, false},
		"unanswered":                   {[]verdict{silent, silent}, errUnanswered, 0, false},
		"waits":                        {[]verdict{waits, waits2}, first, 0, false},
		"refused":                      {[]verdict{refuses, refuses2}, first, 0, true},
		"waits, then refused":          {[]verdict{waits, refuses2}, second, 1, true},
		"refused, then waits":          {[]verdict{refuses, waits2}, first, 0, true},
		"unanswered, then waits":       {[]verdict{silent, waits2}, second, 1, false},
		"unanswered, then refused":     {[]verdict{silent, refuses2}, second, 1, true},
		"waits, then unanswered":       {[]verdict{waits, silent}, first, 0, false},
		"failed, then refused":         {[]verdict{failed, refuses2}, second, 1, true},
		"failed, then waits":           {[]verdict{failed, waits2}, first, 0, false},
		"unanswered, refused, unheard": {[]verdict{silent, refuses, silent}, first, 1, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
			h := &heldKey{}
			for _, v := range c.verdicts {
				h.items = append(h.items, heldItem{verdict: v})
			}
			h.items = append(h.items, heldItem{verdict: refuses}) // of a try before
			o := f.outcomeOf(h, len(c.verdicts))
			if !errors.Is(o.err, c.err) || o.blamed != c.blamed || o.refused != c.refused {
				t.Errorf("%s: %v of item %d, refused %t; want %v of %d, %t", name, o.err, o.blamed, o.refused, c.err, c.blamed, c.refused)
			}
		})
	}
}

// Often only one item of a key has an answer, because the others wait for it.
func TestKeyWaitsOutsideIfOneItemDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
		outside, silent := heldItem{verdict: verdict{kind: waiting, err: errTest, outside: true}}, heldItem{verdict: verdict{err: errUnanswered}}
		for _, held := range [][]heldItem{{outside, silent}, {silent, outside}} {
			if o := f.outcomeOf(&heldKey{items: held}, len(held)); !o.outside {
				t.Errorf("verdicts %+v: the key does not wait for something outside", held)
			}
		}
	})
}

// The key also must have been tried before. A refused key, and one whose call ended in a
// doubt, does not wait too long.
func TestKeyWaitsTooLongOnlyIfOthersWereHandled(t *testing.T) {
	waits := verdict{kind: waiting, err: errTest}
	for name, c := range map[string]struct {
		limit   time.Duration
		verdict verdict
		waited  time.Duration
		tries   int
		since   int64 // documents handled since the last try
		full    bool
		dead    bool
	}{
		"waited too long":    {time.Minute, waits, time.Minute, 1, 1, false, true},
		"not for so long":    {time.Minute, waits, time.Minute - 1, 1, 1, false, false},
		"the window is full": {time.Minute, waits, 0, 1, 1, true, true},
		"no limit":           {0, waits, time.Hour, 1, 1, true, false},
		"its first try":      {time.Minute, waits, time.Hour, 0, 1, true, false},
		"no other passed":    {time.Minute, waits, time.Hour, 1, 0, true, false},
		"refused":            {time.Minute, verdict{kind: refused, err: errTest}, time.Hour, 1, 1, true, false},
		"in doubt":           {time.Minute, verdict{err: errDoubt}, time.Hour, 1, 1, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newTestFlow(t, &Options{
				WaitLimit: c.limit, RetryMin: time.Hour, RetryMax: time.Hour, Observer: &Observer{},
				DeadLetter: func(context.Context, DeadLetter) error { return nil },
			}, HandlerFunc(nil))
			f.handled.Store(10)
			h := &heldKey{attempt: c.tries, since: time.Now(), handledBefore: 10 - c.since, backoff: f.newBackoff(), items: []heldItem{{verdict: c.verdict}}}
			time.Sleep(c.waited)
			if c.full {
				f.window.held = f.window.maxItems
			}
			f.postpone(h, 1)
			it := h.items[0]
			if it.dead != c.dead || it.waited != c.dead || h.attempt != c.tries+1 {
				t.Errorf("%s: dead %t, waited %t, after %d attempts", name, it.dead, it.waited, h.attempt)
			}
			if due := time.Until(h.due); (due <= 0) != (c.dead || errors.Is(c.verdict.err, errDoubt)) {
				t.Errorf("%s: due in %s", name, due)
			}
			if before := h.handledBefore; before != 10 && !errors.Is(c.verdict.err, errDoubt) {
				t.Errorf("%s: %d items were handled at its last attempt, want 10", name, before)
			}
		})
	}
}

// The window becomes full after the last document that could be handled, and after an attempt of each held
// key. Nothing more is read then, so a key that others have outlasted must not wait for another one.
func TestFullWindowDeadLettersAKeyThatOthersHaveOutlasted(t *testing.T) {
	for name, c := range map[string]struct {
		between func(f *flow, h *heldKey) // the first two attempts
		dead    bool
	}{
		"others were handled":          {func(f *flow, _ *heldKey) { f.handled.Add(1) }, true},
		"none was":                     {func(*flow, *heldKey) {}, false},
		"it waited for the outside":    {func(f *flow, h *heldKey) { f.handled.Add(1); f.postpone(h, 1); h.items[0].outside = true }, false},
		"another document of it began": {func(f *flow, h *heldKey) { f.handled.Add(1); f.postpone(h, 1); f.progressed(h) }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newTestFlow(t, &Options{WaitLimit: time.Hour, Observer: &Observer{}, DeadLetter: func(context.Context, DeadLetter) error { return nil }}, HandlerFunc(nil))
			h := &heldKey{since: time.Now(), backoff: f.newBackoff(), items: []heldItem{{verdict: verdict{kind: waiting, err: errTest}}}}
			f.postpone(h, 1)
			c.between(f, h)
			f.postpone(h, 1)
			f.window.held = f.window.maxItems
			for range 2 {
				h.items[0].outside = false
				f.postpone(h, 1)
			}
			if h.items[0].dead != c.dead {
				t.Errorf("%s: dead %t", name, h.items[0].dead)
			}
		})
	}
}

// The end of an outage begins the wait of a key anew, whatever else fails then.
func TestWaitOutsideDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{WaitLimit: time.Minute, Observer: &Observer{}, DeadLetter: func(context.Context, DeadLetter) error { return nil }}, HandlerFunc(nil))
		h := &heldKey{since: time.Now(), backoff: f.newBackoff(), items: []heldItem{{verdict: verdict{kind: waiting, err: errTest, outside: true}}}}
		time.Sleep(time.Hour)
		f.postpone(h, 1)
		time.Sleep(time.Minute - time.Second)
		h.items[0].outside = false
		for range 2 { // with a document of another key handled before each
			f.handled.Add(1)
			f.postpone(h, 1)
		}
		if h.items[0].dead {
			t.Error("a key waited too long because of an outage before")
		}
		time.Sleep(time.Second)
		f.handled.Add(1)
		if f.postpone(h, 1); !h.items[0].dead {
			t.Error("a key may wait longer than the limit")
		}
	})
}

func TestRefusalIsStoredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
		h := &heldKey{backoff: f.newBackoff(), items: []heldItem{{verdict: verdict{kind: waiting, err: errTest}}}}
		if f.postpone(h, 1); f.keeper.due() == 0 {
			t.Error("a wait is written at once")
		}
		h.items[0].kind = refused
		if f.postpone(h, 1); f.keeper.due() != 0 {
			t.Errorf("a refusal is written in %s: a crash before would not count it", f.keeper.due())
		}
	})
}

// The dropped item is delivered by another session, and those after it must follow it.
func TestHeldKeyKeepsNothingAfterADroppedItem(t *testing.T) {
	f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
	f.window.maxItems, f.window.maxBytes = 2*heldShare, 1<<20
	h := &heldKey{items: make([]heldItem, 3)}
	h.items[2].item.LSN = 7
	if !f.keeps(h, &Item{LSN: 7}) || f.keeps(h, &Item{LSN: 8}) {
		t.Error("a transaction is kept whole, and nothing after it beyond the share")
	}
	if h.items, h.dropped = h.items[:1], 8; f.keeps(h, &Item{LSN: 9}) {
		t.Error("an item is kept after one that was dropped")
	}
}

// ended is a session that ends while it is asked.
type ended struct{ keeper *keeper }

func (s ended) ahead(int64) Ahead {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.session = nil
	return Ahead{LSN: 9}
}

// The position may have been moved since: then what was done ahead of the one before counts for nothing.
func TestEndedSessionRecordsNothing(t *testing.T) {
	k := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil)).keeper
	k.session = ended{k}
	if k.collect(); k.snapshot().Ahead.LSN != 0 {
		t.Errorf("ahead of the checkpoint: %+v", k.snapshot().Ahead)
	}
}

// A transaction at the end of the work of former sessions may continue on the next page.
func TestFormerWorkEndsAfterItsLastTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(func(context.Context, *Batch) error { return nil }))
		f.past = past{rest: 5}
		f.admit(&Page{Items: []Item{{LSN: 5}}})
		if f.past.passed != 0 {
			t.Error("the work of former sessions ends within a transaction")
		}
		if f.admit(&Page{Items: []Item{{LSN: 6}}}); f.past.passed != 2 {
			t.Errorf("the work of former sessions ends with page %d, want 2", f.past.passed)
		}
		f.running.Wait()
	})
}

// Empty pages precede one with items.
func TestCheckpointIsTokenOfLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTestFlow(t, &Options{Observer: &Observer{}}, HandlerFunc(nil))
		f.progress([]*page{{token: "1"}, {token: "2", count: 3, lsn: 8, changed: 80}, {token: "3", count: 1, lsn: 7, changed: 70}})
		if l := f.keeper.snapshot(); l.Continuation != "3" || l.LSN != 8 || l.ChangeTime != 80 {
			t.Errorf("checkpoint %q, LSN %d of %d; want 3, LSN 8 of 80", l.Continuation, l.LSN, l.ChangeTime)
		}
		f.progress([]*page{{token: "4"}})
		if l := f.keeper.snapshot(); l.Continuation != "4" || l.LSN != 8 || l.ChangeTime != 80 {
			t.Errorf("after an empty page: checkpoint %q, LSN %d of %d; want 4, LSN 8 of 80", l.Continuation, l.LSN, l.ChangeTime)
		}
	})
}

// lateTimers is a clock whose timers have not run yet, as after a pause of the process.
type lateTimers struct{ systemClock }

func (lateTimers) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// Neither the handler nor the sink is called, and the reason is returned.
func TestNoCallWithoutTrust(t *testing.T) {
	for name, c := range map[string]struct {
		late bool // the timer of the fence
		end  func(f *flow)
		want error
	}{
		"the fence has passed, and its timer has not run": {true, func(f *flow) { time.Sleep(f.keeper.fence.left()) }, ErrFenced},
		"the drain is over": {false, func(f *flow) { f.keeper.fence.revoke(ErrDraining) }, ErrDraining},
		"it is in doubt, and found lost": {false, func(f *flow) {
			f.keeper.fence.until.wall = time.Time{}
			f.keeper.end(ErrLeaseLost)
		}, ErrLeaseLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			o := &Options{Observer: &Observer{}, DeadLetter: func(context.Context, DeadLetter) error {
				calls++
				return nil
			}}
			if began := time.Now(); c.late {
				o.Clock, o.Now = lateTimers{}, func() time.Time { return began }
			}
			f := newTestFlow(t, o, HandlerFunc(func(context.Context, *Batch) error {
				calls++
				return nil
			}))
			c.end(f)
			verdicts := f.call(&page{}, make([]Item, 2), 1, true)
			err := f.deadLetter(DeadLetter{})
			if calls != 0 || !errors.Is(err, c.want) || len(verdicts) != 2 || !errors.Is(verdicts[1].err, c.want) || verdicts[1].kind != unanswered {
				t.Errorf("%s: %d calls; %v, %v; want none, and %v", name, calls, verdicts, err, c.want)
			}
		})
	}
}

// The context ends without a timeout, too, because its resources would leak otherwise.
func TestHandlerContextEndsWithTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got context.Context
		f := newTestFlow(t, &Options{HandlerTimeout: -1, Observer: &Observer{}}, HandlerFunc(func(ctx context.Context, _ *Batch) error {
			if got = ctx; ctx.Err() != nil {
				t.Error("it has ended before")
			}
			return nil
		}))
		if v := f.call(&page{}, make([]Item, 1), 1, true); v != nil || got.Err() == nil {
			t.Errorf("verdicts %v; after the call its context has %v", v, got.Err())
		}
	})
}
