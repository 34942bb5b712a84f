package changefeed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// run runs a processor on another feed than the world's until the test or stop ends it.
func (w *world) run(feed changefeed.Feed, h changefeed.Handler, o *changefeed.Options) (stop func()) {
	w.t.Helper()
	o.Host = "a"
	p, err := changefeed.New(feed, w.store, h, o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// lender counts the pages that were not given back.
type lender struct {
	changefeed.Feed
	lent atomic.Int64
}

func (f *lender) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := f.Feed.Read(ctx, req)
	if err == nil {
		f.lent.Add(1)
		page.Release = func() { f.lent.Add(-1) }
	}
	return page, err
}

// Whatever a session ends with, the memory of its pages is given back.
func TestAllPagesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &lender{Feed: w.feed}
		got := newLedger()
		w.put(500, 50)
		stop := w.run(feed, changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				got.note(&b.Items[i])
			}
			return pause(ctx, time.Second)
		}), &changefeed.Options{Lanes: 2, MaxItems: 10, ReadAheadItems: 100})
		eventually(t, time.Minute, "some are handled", func() bool { return got.distinct() > 30 })
		if feed.lent.Load() < 3 {
			t.Errorf("%d pages are read ahead", feed.lent.Load())
		}
		stop()
		if n := feed.lent.Load(); n != 0 {
			t.Errorf("%d pages were not given back", n)
		}
	})
}

// Pages without items move a manual handler's checkpoint only if it has vouched for all
// before them.
func TestAnEmptyPageVouchesForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &wanderer{Feed: w.feed}
		checkpoint := make(chan func() error, 1)
		w.put(1, 1)
		stop := w.run(feed, changefeed.Manual(func(ctx context.Context, _ *changefeed.Batch, save changefeed.Checkpoint) error {
			checkpoint <- func() error { return save(t.Context()) }
			return nil
		}), &changefeed.Options{})
		time.Sleep(10 * time.Minute)
		if l := w.leases()[0]; l.Continuation != "" || feed.reads.Load() < 20 {
			t.Errorf("continuation %s after %d empty pages; the handler has saved nothing", l.Continuation, feed.reads.Load())
		}
		if err := (<-checkpoint)(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if l := w.leases()[0]; checkpointLSN(t, l.Continuation) < 1000 {
			t.Errorf("continuation %s, want that of an empty page", l.Continuation)
		}
		stop()
	})
}

// A range is stuck once it has failed for StuckAfter on end: what failed before a pause
// does not count.
func TestARangeIsStuckAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var down atomic.Bool
		var stuck atomic.Int32
		down.Store(true)
		w.got.before = func(context.Context, *changefeed.Batch) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		w.put(1, 1)
		w.start("a", nil, &changefeed.Options{RetryMax: time.Second, Observer: &changefeed.Observer{
			RangeStuck: func(changefeed.RangeStuck) { stuck.Add(1) },
		}})
		time.Sleep(40 * time.Second)
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		down.Store(false)
		if err := w.operator().ResumeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 1 })
		down.Store(true)
		w.put(1, 1)
		time.Sleep(40 * time.Second)
		if stuck.Load() != 0 {
			t.Error("stuck after 40 seconds, want a minute")
		}
		time.Sleep(time.Minute)
		if stuck.Load() != 1 {
			t.Errorf("told %d times, want once", stuck.Load())
		}
		down.Store(false)
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 2 })
	})
}
