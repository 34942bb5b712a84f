package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// A checkpoint covers one page, so a retry contains items of one page only.
func TestManualHandlerRetriesOnePageAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var calls atomic.Int32
		w.put(12, 12)
		w.start("a", changefeed.Manual(func(ctx context.Context, b *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			if last := b.Items[len(b.Items)-1].LSN; len(b.Items) != 3 || b.Continuation != fmt.Sprintf("%q", fmt.Sprint(last)) {
				t.Errorf("%d items up to %d, position %s; want the 3 of a page", len(b.Items), last, b.Continuation)
			}
			if calls.Add(1) < 4 {
				return errNotNow
			}
			return checkpoint(ctx)
		}), &changefeed.Options{MaxItems: 3})
		eventually(t, time.Minute, "all stored", func() bool { return w.stored(12) })
	})
}

func TestRangeIsHealthyOnlyWithoutHeldKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var open atomic.Bool
		var recovered atomic.Int32
		failed := map[string]bool{}
		w.put(1, 1)
		w.traffic(10 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			id := idOf(&item)
			if id == "doc-1" && !open.Load() || !failed[id] {
				failed[id] = true
				return errNotNow
			}
			return nil
		}), &changefeed.Options{RetryMax: 10 * time.Minute, Observer: &changefeed.Observer{
			RangeRecovered: func(changefeed.RangeRecovered) { recovered.Add(1) },
		}})
		time.Sleep(30 * time.Minute)
		if l := w.leases()[0]; recovered.Load() != 0 || l.Health != changefeed.Retrying {
			t.Errorf("health %q, recovered %d times, and a document waits", l.Health, recovered.Load())
		}
		open.Store(true)
		eventually(t, 15*time.Minute, "healthy", func() bool { return recovered.Load() > 0 })
	})
}

// Of several causes the handler's own answer is reported. A refusal may be wrapped.
func TestAnswerIsReportedAsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		var reported atomic.Pointer[error]
		w.put(9, 3)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				switch idOf(&b.Items[i]) {
				case "doc-1", "doc-4", "doc-7":
				case "doc-8":
					b.Answer(i, fmt.Errorf("wrapped: %w", changefeed.Refuse(errors.New("cannot handle this"))))
				case "doc-3":
					b.Answer(i, errNotNow)
				default:
					b.Answer(i, nil)
				}
			}
			return nil
		}), &changefeed.Options{
			DeadLetter: g.store, RetryMin: time.Second, RetryMax: time.Hour,
			Observer: &changefeed.Observer{BatchFailed: func(e changefeed.BatchFailed) { reported.CompareAndSwap(nil, &e.Err) }},
		})
		time.Sleep(500 * time.Millisecond)
		if err := reported.Load(); err == nil || !errors.Is(*err, errNotNow) {
			t.Errorf("the observer receives %v, want the handler's reason", err)
		}
		time.Sleep(time.Minute)
		if g.count() != 1 || g.letters[0].ID != "doc-8" || g.letters[0].Waiting {
			t.Errorf("letters %+v, want one for the refused document", g.letters)
		}
	})
}

func TestEachEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		w.put(10, 10)
		var late atomic.Int32
		failed := make(chan error, 10)
		w.start("a", changefeed.Each(func(ctx context.Context, item changefeed.Item) error {
			if ctx.Err() != nil {
				late.Add(1)
			}
			time.Sleep(400 * time.Millisecond) // ignoring ctx
			got.note(&item)
			return nil
		}), &changefeed.Options{HandlerTimeout: time.Second, Observer: &changefeed.Observer{
			BatchFailed: func(e changefeed.BatchFailed) {
				select {
				case failed <- e.Err:
				default:
				}
			},
		}})
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 10 })
		if got.once(t); late.Load() != 0 {
			t.Errorf("%d items were begun after the time-out", late.Load())
		}
		select {
		case err := <-failed:
			if !errors.Is(err, changefeed.ErrHandlerTimeout) {
				t.Errorf("the call failed with %v, want the time-out", err)
			}
		default:
			t.Error("no call failed")
		}
	})
}

// A typed handler is not called without items. A handler that answers that all items are
// done has not failed.
func TestNoCallWithoutItemsNoFailureWithoutError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		var handled, failed atomic.Int32
		w.feed.Put(memfeed.Document{Key: "k", ID: "bad", More: map[string]any{"n": "text"}})
		w.start("a", changefeed.Typed(func(_ context.Context, b *changefeed.Batch, items []struct{ N int }) error {
			if len(items) == 0 {
				t.Error("called without items")
			}
			for i := range items {
				b.Answer(i, nil)
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store, Observer: &changefeed.Observer{
			BatchHandled: func(changefeed.BatchHandled) { handled.Add(1) },
			BatchFailed:  func(changefeed.BatchFailed) { failed.Add(1) },
		}})
		eventually(t, time.Minute, "kept", func() bool { return g.count() == 1 })
		before := failed.Load()
		w.put(3, 3)
		eventually(t, time.Minute, "handled", func() bool { return w.stored(4) })
		if failed.Load() != before || handled.Load() == 0 {
			t.Errorf("%d failures, %d batches handled", failed.Load()-before, handled.Load())
		}
	})
}

// A call that ended because the lease was in doubt is not reported as a failure, and is
// repeated as soon as the lease is renewed.
func TestDoubtIsNotCountedAsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		var calls, troubles atomic.Int32
		var first, second time.Time
		w.put(1, 1)
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			if calls.Add(1) == 1 {
				first = time.Now()
				ahead.Store(int64(time.Hour)) // as after a suspension of the machine
				return ctx.Err()
			}
			second = time.Now()
			return nil
		}), &changefeed.Options{
			RetryMin: 5 * time.Second,
			Now:      func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			Observer: &changefeed.Observer{RangeRecovered: func(changefeed.RangeRecovered) { troubles.Add(1) }},
		})
		eventually(t, time.Minute, "handled", func() bool { return w.stored(1) })
		if took := second.Sub(first); took > time.Second || troubles.Load() != 0 {
			t.Errorf("called again after %s; the range had trouble %d times", took, troubles.Load())
		}
	})
}

func TestEmptyPageWaitsForManualCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &movingFeed{Feed: w.feed}
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

func TestEmptyPagesMoveAManualCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &movingFeed{Feed: w.feed}
		w.put(1, 1)
		stop := w.run(feed, changefeed.Manual(func(ctx context.Context, _ *changefeed.Batch, save changefeed.Checkpoint) error {
			return save(ctx)
		}), &changefeed.Options{})
		time.Sleep(10 * time.Minute)
		if l := w.leases()[0]; checkpointLSN(t, l.Continuation) < 1000 {
			t.Errorf("continuation %s, want that of an empty page", l.Continuation)
		}
		stop()
	})
}
