package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

func TestSplitsAndMergesUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.got.before = func(ctx context.Context, b *changefeed.Batch) error { return pause(ctx, time.Millisecond) }
		o := &changefeed.Options{Lanes: 4, MaxItems: 20}
		w.start("a", nil, o)
		w.start("b", nil, o)
		var writing sync.WaitGroup
		writing.Go(func() {
			for range 40 {
				w.put(50, 60)
				time.Sleep(250 * time.Millisecond)
			}
		})
		for i := range 6 {
			time.Sleep(time.Second)
			w.feed.Split(memfeed.EPK(fmt.Sprintf("key-%d", i*7)))
		}
		time.Sleep(time.Second)
		w.feed.Merge(memfeed.EPK("key-1"))
		w.feed.Merge(memfeed.EPK("key-2"))
		writing.Wait()
		eventually(t, time.Minute, "all delivered", func() bool { return w.got.distinct() == 2000 })
		w.got.ordered(t)
		if n := w.got.count(); n != 2000 {
			t.Errorf("%d deliveries of 2000 changes: splits and merges redelivered %d", n, n-2000)
		}
		live := 0
		for _, l := range w.leases() {
			if l.State == changefeed.LeaseLive {
				live++
			}
		}
		if live != 7 {
			t.Errorf("%d live leases after 6 splits, want 7", live)
		}
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The store refuses to delete: retired leases stay and are never processed
// again, also after their children split in turn.
func TestSplitWithoutDeletePermissionReplaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if op.Kind == memstore.Delete {
				return errors.New("not allowed")
			}
			return nil
		}})
		a := w.start("a", nil, nil)
		for round := range 4 {
			w.put(100, 30)
			eventually(t, 10*time.Second, "delivered", func() bool { return w.got.distinct() == 100*(round+1) })
			w.feed.Split(memfeed.EPK(fmt.Sprintf("key-%d", round)))
			time.Sleep(10 * time.Second)
		}
		a.stop()
		w.start("b", nil, nil)
		w.put(100, 30)
		time.Sleep(3 * time.Minute)
		if n := w.got.count(); n != 500 {
			t.Errorf("%d deliveries of 500 changes", n)
		}
		w.got.ordered(t)
	})
}

// A split that stops at any step is carried on by another host.
func TestSplitInterruptedAtEveryStep(t *testing.T) {
	for step := range 14 {
		t.Run(fmt.Sprintf("step=%d", step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var splitting atomic.Bool
				var writes atomic.Int64
				var a *host
				crashing := memstore.New(&memstore.Options{After: func(_ context.Context, op memstore.Op) error {
					if splitting.Load() && op.Kind != memstore.List && op.Kind != memstore.Read && writes.Add(1) == int64(step+1) {
						a.crash()
						return errCut
					}
					return nil
				}})
				w.store = crashing
				a = w.start("a", nil, &changefeed.Options{CheckpointEvery: -1})
				w.put(100, 30)
				eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
				time.Sleep(2 * time.Second)
				w.feed.Split("20")
				splitting.Store(true)
				w.put(100, 30)
				time.Sleep(3 * time.Second)
				splitting.Store(false)
				w.start("b", nil, nil)
				eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 200 })
				w.got.ordered(t)
				eventually(t, time.Minute, "two live leases", func() bool {
					live := 0
					for _, l := range w.leases() {
						if l.State == changefeed.LeaseLive {
							live++
						} else {
							return false
						}
					}
					return live == 2
				})
			})
		})
	}
}

// What children inherit is the checkpoint, not what was read: pages handed out
// but not saved by a manual handler come again.
func TestSplitInheritsTheManualCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		seen := map[string]int{}
		var save atomic.Bool
		w.start("a", changefeed.Manual(func(ctx context.Context, b *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			mu.Lock()
			for i := range b.Items {
				seen[string(b.Items[i].Raw)]++
			}
			mu.Unlock()
			if save.Load() {
				return checkpoint(ctx)
			}
			return nil
		}), &changefeed.Options{MaxItems: 10})
		save.Store(true)
		w.put(50, 20)
		time.Sleep(5 * time.Second)
		save.Store(false)
		w.put(50, 20)
		time.Sleep(time.Minute) // renewals must not save what the handler did not
		w.feed.Split("20")
		save.Store(true)
		w.put(10, 20)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		once, twice := 0, 0
		for _, n := range seen {
			switch n {
			case 1:
				once++
			case 2:
				twice++
			default:
				t.Errorf("a change was delivered %d times", n)
			}
		}
		if once != 60 || twice != 50 {
			t.Errorf("%d changes delivered once and %d twice, want 60 and the 50 that were not saved", once, twice)
		}
	})
}

func TestManualRefusesLanes(t *testing.T) {
	w := newWorld(t, 1)
	manual := changefeed.Manual(func(context.Context, *changefeed.Batch, changefeed.Checkpoint) error { return nil })
	if _, err := changefeed.New(w.feed, w.store, manual, &changefeed.Options{Lanes: 2}); err == nil || !strings.Contains(err.Error(), "manual") {
		t.Errorf("error %v", err)
	}
}

// A parent that comes back beside its children, as a restored backup or another
// product leaves it, is retired and not processed.
func TestReplayedParentIsRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil)
		w.put(100, 30)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(10 * time.Second)
		parent := w.leases()[0]
		record, err := w.store.Read(t.Context(), parent.ID)
		if err != nil {
			t.Fatal(err)
		}
		w.feed.Split("20")
		eventually(t, 30*time.Second, "split", func() bool { return len(w.leases()) == 2 })
		w.put(100, 30)
		time.Sleep(20 * time.Second)
		w.feed.Merge("08") // one physical range again: nothing tells that the lease is from the past
		old := strings.Replace(string(record.Body), `\"100\"`, `\"5\"`, 1)
		old = strings.Replace(old, `"Owner":"a"`, `"Owner":null`, 1)
		create(t, w, parent.ID, old)
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 200 {
			t.Errorf("%d deliveries of 200 changes: the parent was processed again", n)
		}
		if n := len(w.leases()); n != 2 {
			t.Errorf("%d leases, want the 2 children", n)
		}
	})
}

// A parent with only one of its children goes on for the rest, from its own
// checkpoint.
func TestHalfReplacedParentKeepsItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(100, 40)
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		lease := func(lo, hi, token string) {
			id := fmt.Sprintf("%s..%s-%s", prefix, lo, hi)
			create(t, w, id, fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"ContinuationToken":%q}`,
				id, lo, hi, lo, hi, `"`+token+`"`))
		}
		lease("", "FF", "10")
		lease("", "20000000", "60")
		w.start("a", nil, nil)
		eventually(t, time.Minute, "two live leases", func() bool { return len(w.leases()) == 2 && w.owners()["a"] == 2 })
		time.Sleep(10 * time.Second)
		want := 0
		for i := 10; i < 100; i++ {
			if low := memfeed.EPK(fmt.Sprintf("key-%d", i%40)) < "20000000"; !low || i >= 60 {
				want++
			}
		}
		if n := w.got.count(); n != want {
			t.Errorf("%d deliveries, want %d", n, want)
		}
	})
}
