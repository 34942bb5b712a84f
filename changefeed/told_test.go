package changefeed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// Who looks why a call ran out of time finds what the handler was at.
func TestATimeOutKeepsTheHandlersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told atomic.Pointer[error]
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			<-ctx.Done()
			return errNotNow
		}), &changefeed.Options{HandlerTimeout: time.Second, Observer: &changefeed.Observer{
			BatchFailed: func(e changefeed.BatchFailed) { told.Store(&e.Err) },
		}})
		eventually(t, time.Minute, "a failure", func() bool { return told.Load() != nil })
		if err := *told.Load(); !errors.Is(err, changefeed.ErrHandlerTimeout) || !errors.Is(err, errNotNow) {
			t.Errorf("told %v, want the time-out and the handler's error", err)
		}
	})
}

// How often a range has failed is counted on by its next owner.
func TestFailuresAreCountedOnAfterATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		fail := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errNotNow })
		options := &changefeed.Options{RetryMax: time.Second}
		w.put(1, 1)
		a := w.start("a", fail, options)
		time.Sleep(5 * time.Minute)
		before := w.leases()[0].Failures
		a.crash()
		w.start("b", fail, options)
		eventually(t, time.Minute, "the takeover", func() bool { return w.owners()["b"] == 1 })
		time.Sleep(30 * time.Second)
		if after := w.leases()[0].Failures; before < 100 || after <= before {
			t.Errorf("%d failures with the first owner, %d later with the next one", before, after)
		}
	})
}

// A wall clock that is behind that of the service makes nothing younger than new.
func TestLagIsNotNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		a := w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}), &changefeed.Options{Now: func() time.Time { return time.Now().Add(-time.Hour) }})
		time.Sleep(10 * time.Second)
		if lags := a.Lag(); len(lags) != 1 || !lags[0].Known || lags[0].Age != 0 || lags[0].Transactions != 1 {
			t.Errorf("%+v, want one transaction of no age", lags)
		}
	})
}

// A read takes as long as the feed does.
func TestTheTimeOfAReadIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.feed = memfeed.New(&memfeed.Options{Before: func(context.Context, changefeed.ReadRequest) error {
			time.Sleep(3 * time.Second)
			return nil
		}})
		var took atomic.Int64
		w.put(1, 1)
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{PageRead: func(e changefeed.PageRead) { took.Store(int64(e.Took)) }}})
		eventually(t, time.Minute, "the document", func() bool { return w.got.count() == 1 })
		if d := time.Duration(took.Load()); d != 3*time.Second {
			t.Errorf("told %s, it took 3 s", d)
		}
	})
}

// What was read ahead and dropped, because a pause came first, still waits.
func TestTheLagOfAPausedRangeIsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { return pause(ctx, 20*time.Second) }
		w.put(100, 100)
		a := w.start("a", nil, &changefeed.Options{MaxItems: 10, DrainTimeout: time.Minute})
		eventually(t, time.Minute, "begun", func() bool { return w.got.count() == 10 })
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		far, err := w.operator().Lag(t.Context())
		if err != nil || len(far) != 1 {
			t.Fatal(far, err)
		}
		if near := a.Lag()[0]; !near.Known || near.Transactions != far[0].Transactions || near.Age != far[0].Age || near.Age < 10*time.Minute {
			t.Errorf("the host tells %d transactions of %s, the operator %d of %s", near.Transactions, near.Age, far[0].Transactions, far[0].Age)
		}
		if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if near := a.Lag()[0]; near.Known && near.Transactions != 100 {
			t.Errorf("after a rewind to the beginning the host tells %d transactions", near.Transactions)
		}
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Minute, "delivered", func() bool { return w.got.count() > 100 && a.Lag()[0].Transactions == 0 })
	})
}

// Changes that come during a pause are read by nobody: the host does not say that nothing
// waits.
func TestTheLagOfAPauseWithNothingInHandIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, &changefeed.Options{})
		known := func() bool { l := a.Lag(); return len(l) == 1 && l[0].Known }
		eventually(t, time.Minute, "read", known)
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.put(10, 10)
		if known() {
			t.Errorf("in a pause the host tells %+v", a.Lag()[0])
		}
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "read again", func() bool { return w.got.count() == 10 && known() })
	})
}
