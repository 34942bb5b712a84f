package changefeed_test

import (
	"context"
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

// countingFeed counts the pages that were not released.
type countingFeed struct {
	changefeed.Feed
	lent atomic.Int64
}

func (f *countingFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	page, err := f.Feed.Read(ctx, req)
	if err == nil {
		f.lent.Add(1)
		page.Release = func() { f.lent.Add(-1) }
	}
	return page, err
}

func TestEverySessionReleasesItsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &countingFeed{Feed: w.feed}
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
			t.Errorf("%d pages were not released", n)
		}
	})
}
