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

// The store refuses deletes: retired leases remain and are never processed again, also
// after their children split in turn.
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

// Another host completes a split that stops at any step.
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

// Children inherit the checkpoint: pages that a manual handler received but did not save
// are delivered again.
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
		time.Sleep(time.Minute) // renewals must not save the handler's progress
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

// A parent reappears after the restore of a backup, or because of another product.
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
		w.feed.Merge("08") // one physical range again, so reads do not show that the lease is old
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

// A parent with only one of its children continues for the rest, from its own checkpoint.
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

// A read may report a split that the list of physical ranges does not show yet: the lease
// is released and read again later.
func TestSplitMissingFromRangeListReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var ops []string
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch {
			case call < 4:
				return nil, &changefeed.SplitError{Range: changefeed.FullRange()}
			case call == 4:
				return change(1, "k"), nil
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{
			RangeSplit: func(changefeed.RangeSplit) { t.Error("the lease was split") },
			LeaseError: func(e changefeed.LeaseError) { mu.Lock(); defer mu.Unlock(); ops = append(ops, e.Op) },
		}})
		eventually(t, 2*time.Minute, "read", func() bool { return w.got.distinct() == 1 })
		mu.Lock()
		if fmt.Sprint(ops) != "[split split split]" {
			t.Errorf("errors reported: %v, want one for each split", ops)
		}
		mu.Unlock()
		if l := w.leases(); len(l) != 1 || l[0].State != changefeed.LeaseLive || l[0].Range != changefeed.FullRange() {
			t.Errorf("leases %+v", l)
		}
		stop()
	})
}

func TestChildrenOfSplitMayBeUnsorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		parts := []changefeed.FeedRange{{Min: "20", Max: "FF"}, {Min: "", Max: "10"}, {Min: "10", Max: "20"}}
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				return nil, &changefeed.SplitError{Range: changefeed.FullRange(), Children: parts} // the list does not show them yet
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "split", func() bool { return w.owners()[""] == 0 && len(w.leases()) == 3 })
		for i, l := range w.leases() {
			if want := parts[(i+1)%3]; l.Range != want || l.State != changefeed.LeaseLive {
				t.Errorf("lease %d is of %s, %q, want %s", i, l.Range, l.State, want)
			}
		}
		stop()
	})
}

func TestReplayedLeaseIsRetiredByItsOwnerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		body := func(lo, hi, owner string) (id, text string) {
			id = fmt.Sprintf("%s..%s-%s", prefix, lo, hi)
			return id, fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":%s,"ContinuationToken":"\"1\""}`, id, lo, hi, lo, hi, owner)
		}
		wide, text := body("", "FF", `"net"`)
		create(t, w, wide, text)
		narrow, other := body("", "20", "null")
		create(t, w, narrow, other)
		w.start("a", nil, nil)
		for range 20 { // the owner lives
			time.Sleep(17 * time.Second)
			r, err := w.store.Read(t.Context(), wide)
			if err != nil || !strings.Contains(string(r.Body), `"Owner":"net"`) {
				t.Fatalf("the record of a live owner: %s, error %v", r.Body, err)
			}
			if _, err := w.store.Replace(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 3*time.Minute, "retired once its owner is gone", func() bool {
			leases := w.leases()
			return len(leases) == 2 && leases[0].ID == narrow && leases[1].Range.Min == "20" && w.owners()["a"] == 2
		})
	})
}
