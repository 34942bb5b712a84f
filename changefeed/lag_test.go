package changefeed_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// The host's wall clock may be slower than the service's.
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

// Pages that were read ahead and dropped by a pause still count.
func TestPausedRangeReportsDroppedChangesAsLag(t *testing.T) {
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
			t.Errorf("the host reports %d transactions of %s, the operator %d of %s", near.Transactions, near.Age, far[0].Transactions, far[0].Age)
		}
		if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if near := a.Lag()[0]; near.Known && near.Transactions != 100 {
			t.Errorf("after a rewind to the beginning the host reports %d transactions", near.Transactions)
		}
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Minute, "delivered", func() bool { return w.got.count() > 100 && a.Lag()[0].Transactions == 0 })
	})
}

// A restarted session drops the changes that were read ahead. They are lag until they are read again, although
// everything was read before.
func TestDroppedChangesAreLagUntilTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		w := newWorld(t, 1)
		w.feed = memfeed.New(&memfeed.Options{Before: func(ctx context.Context, r changefeed.ReadRequest) error {
			if silent.Load() && r.MaxItems == 10 { // not those that measure the lag
				return pause(ctx, 5*time.Second)
			}
			return nil
		}})
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { return pause(ctx, 2*time.Second) }
		w.put(100, 100)
		a := w.start("a", nil, &changefeed.Options{MaxItems: 10, ReadAheadItems: 1000, DrainTimeout: time.Minute})
		eventually(t, time.Minute, "begun", func() bool { return w.got.count() == 10 })
		silent.Store(true)
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			time.Sleep(100 * time.Millisecond)
			if near := a.Lag()[0]; near.Known && near.Transactions < 70 {
				t.Fatalf("%d transactions before a read was answered", near.Transactions)
			}
		}
	})
}

// Nothing is read in a pause, so the lag is measured at the checkpoint. Otherwise a paused range
// would look like one without changes.
func TestPausedRangeReportsChangesOfThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing, silent atomic.Bool
		w := newWorld(t, 1)
		w.feed = memfeed.New(&memfeed.Options{Before: func(ctx context.Context, _ changefeed.ReadRequest) error {
			switch {
			case failing.Load():
				return errRead
			case silent.Load():
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}})
		a := w.start("a", nil, &changefeed.Options{})
		lag := func() changefeed.RangeLag {
			if l := a.Lag(); len(l) == 1 {
				return l[0]
			}
			return changefeed.RangeLag{}
		}
		pause := func() {
			t.Helper()
			if err := w.operator().Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "paused", func() bool { return lag().Paused })
		}
		eventually(t, time.Minute, "started", func() bool { return len(a.Lag()) == 1 })
		pause()
		eventually(t, time.Minute, "measured without changes", func() bool { l := lag(); return l.Known && l.Transactions == 0 && l.Age == 0 })
		w.put(10, 10)
		eventually(t, time.Minute, "measured", func() bool { l := lag(); return l.Known && l.Transactions == 10 })
		before := lag()
		time.Sleep(time.Minute)
		if l := lag(); !l.Known || l.Transactions != 10 || l.Age < before.Age+time.Minute {
			t.Errorf("a minute after %+v: %+v", before, l)
		}
		if w.got.count() != 0 {
			t.Errorf("%d changes were delivered in the pause", w.got.count())
		}
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "delivered", func() bool { l := lag(); return w.got.count() == 10 && l.Known && !l.Paused && l.Transactions == 0 })
		pause()
		failing.Store(true)
		eventually(t, time.Minute, "unknown", func() bool { l := lag(); return !l.Known && l.Unknown == changefeed.UnknownFailed })
		failing.Store(false)
		eventually(t, time.Minute, "known", func() bool { return lag().Known })
		silent.Store(true)
		if err := w.operator().Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "resumed", func() bool { return !lag().Paused })
		neverKnown := func(since string) {
			t.Helper()
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				if l := lag(); l.Known {
					t.Fatalf("%+v is known of a range that was not read since the %s", l, since)
				}
			}
		}
		neverKnown("pause")
		silent.Store(false)
		eventually(t, time.Minute, "read again", func() bool { return lag().Known })
		silent.Store(true)
		if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "rewound", func() bool { return lag().Continuation == "" })
		neverKnown("rewind")
	})
}

// Changes that the feed withholds were committed, so they are a lag.
func TestWithheldChangesAreLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Now()
		lag := lagOf(t, func() (*changefeed.Page, error) {
			return &changefeed.Page{Continuation: `"9"`, CaughtUp: true, Withheld: 3, WithheldSince: since}, nil
		})
		if !lag.Known || lag.Transactions != 3 || lag.Withheld != 3 || !lag.Oldest.Equal(since) || lag.Age != time.Since(since) {
			t.Errorf("%+v, want three transactions since %s", lag, since)
		}
	})
}

// They are a lag of a paused range, too, which measures it without a session.
func TestWithheldChangesOfAPauseAreLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, since := newWorld(t, 1), time.Now()
		feed := &script{Feed: w.feed, read: func(context.Context, int64) (*changefeed.Page, error) {
			return &changefeed.Page{Continuation: `"9"`, CaughtUp: true, Withheld: 3, WithheldSince: since}, nil
		}}
		p, stop := hostOf(t, w, feed)
		eventually(t, time.Minute, "started", func() bool { return len(p.Lag()) == 1 })
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		var lag changefeed.RangeLag
		eventually(t, time.Minute, "measured in the pause", func() bool { lag = p.Lag()[0]; return lag.Paused && lag.Known })
		if lag.Transactions != 3 || lag.Withheld != 3 || !lag.Oldest.Equal(since) {
			t.Errorf("%+v, want three transactions since %s", lag, since)
		}
		stop()
	})
}

// hostOf runs a processor that reads feed until stop is called, which waits for it.
func hostOf(t *testing.T, w *world, feed changefeed.Feed) (p *changefeed.Processor, stop func()) {
	t.Helper()
	p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Host: "a"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return p, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// lagOf runs a range with scripted first reads and returns its lag some seconds later. The
// last reply is repeated.
func lagOf(t *testing.T, replies ...func() (*changefeed.Page, error)) changefeed.RangeLag {
	t.Helper()
	w := newWorld(t, 1)
	feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
		return replies[min(int(call), len(replies))-1]()
	}}
	p, stop := hostOf(t, w, feed)
	eventually(t, time.Minute, "read", func() bool { return int(feed.calls.Load()) > len(replies) })
	lags := p.Lag()
	if stop(); len(lags) != 1 {
		t.Fatalf("lags %+v", lags)
	}
	return lags[0]
}

// The lag is known again after the next successful read.
func TestUnreadableRangeReportsUnknownLag(t *testing.T) {
	page := func() (*changefeed.Page, error) { return &changefeed.Page{Continuation: `"1"`, CaughtUp: true}, nil }
	fails := func() (*changefeed.Page, error) { return nil, errRead }
	synctest.Test(t, func(t *testing.T) {
		if lag := lagOf(t, page, fails); lag.Known || lag.Unknown != changefeed.UnknownFailed {
			t.Errorf("%+v of a range that cannot be read", lag)
		}
		if lag := lagOf(t, page, fails, page); !lag.Known {
			t.Errorf("%+v of a range that can be read again", lag)
		}
	})
}

// The end of the feed is one transaction after the place where the range was caught up. Without a change that was
// read, the age of that transaction is not known.
func TestCaughtUpRangeHasNoLag(t *testing.T) {
	caughtUp := func() (*changefeed.Page, error) {
		return &changefeed.Page{Continuation: `"9"`, EndLSN: 9, CaughtUp: true}, nil
	}
	others := func() (*changefeed.Page, error) { return &changefeed.Page{Continuation: `"10"`, EndLSN: 10}, nil }
	synctest.Test(t, func(t *testing.T) {
		changed := func() (*changefeed.Page, error) { return change(8, "k"), nil }
		if lag := lagOf(t, changed, caughtUp, others, others); !lag.Known || lag.Transactions != 1 || lag.Age == 0 {
			t.Errorf("%+v, want 1 transaction more than where it was caught up, and its age", lag)
		}
		if lag := lagOf(t, caughtUp, others, others); lag.Known {
			t.Errorf("%+v, want unknown: no change was read", lag)
		}
	})
}

func TestLagOfOwnRangesCostsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		block := make(chan struct{})
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			select {
			case <-block:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		h := w.start("a", nil, &changefeed.Options{MaxItems: 10, ReadAheadItems: 30, HandlerTimeout: -1})
		time.Sleep(10 * time.Second)
		if l := h.Lag(); len(l) != 1 || !l[0].Known || l[0].Transactions != 0 || l[0].Age != 0 {
			t.Errorf("idle: %+v", l)
		}
		w.put(100, 5)
		time.Sleep(40 * time.Second)
		before := h.Requests()
		l := h.Lag()[0]
		if !l.Known || l.Transactions != 100 || l.Age < 30*time.Second || l.Age > 50*time.Second || l.Owner != "a" {
			t.Errorf("nothing of 100 handled for 40 s: %+v", l)
		}
		if h.Requests() != before {
			t.Error("measuring cost requests")
		}
		// The operator's own reads give the same lag before the first checkpoint.
		far, err := w.operator().Lag(t.Context())
		if err != nil || len(far) != 1 || far[0].Transactions != 100 || far[0].Age != l.Age || !far[0].Known {
			t.Errorf("operator: %+v, error %v", far, err)
		}
		close(block)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(5 * time.Second)
		if l := h.Lag()[0]; l.Transactions != 0 || l.Age != 0 {
			t.Errorf("all handled: %+v", l)
		}
		w.feed.Split("20")
		if far, err := w.operator().Lag(t.Context()); err != nil || len(far) == 0 || !far[0].Known || far[0].Transactions != 0 {
			t.Errorf("operator across a split: %+v, error %v", far, err)
		}
	})
}

// A replica that ends before the end that an earlier reply reported is delayed: the changes in
// between are lag.
func TestDelayedReplicaDoesNotHideLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				page := change(100, "k")
				page.EndLSN = 200
				return page, nil
			}
			return &changefeed.Page{CaughtUp: true, EndLSN: 100}, nil
		}}
		p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1 })
		time.Sleep(time.Minute)
		if l := p.Lag(); len(l) != 1 || l[0].Known && l[0].Transactions != 100 {
			t.Errorf("lag %d, known %t; want 100 or unknown: the feed has ended at 200", l[0].Transactions, l[0].Known)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The first pages of a lease may have changes of other leases only.
func TestLagBeforeTheFirstChangeHasNoAgeSince1970(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(ctx context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				return &changefeed.Page{Continuation: `"100"`, EndLSN: 200}, nil
			}
			return nil, pause(ctx, 20*time.Second)
		}}
		p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(10 * time.Second)
		if l := p.Lag(); len(l) != 1 || l[0].Known && l[0].Age > time.Minute {
			t.Errorf("lag of %d, known %t, age %s, oldest %s; no change is so old", l[0].Transactions, l[0].Known, l[0].Age, l[0].Oldest)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
