package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// A slow reply of the store shortens the window.
func TestTrustWindowBeginsBeforeTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var late atomic.Bool
		var landed, fenced atomic.Int64
		w.store = memstore.New(&memstore.Options{After: func(ctx context.Context, op memstore.Op) error {
			if late.Load() && op.Kind == memstore.Replace {
				landed.Store(time.Now().UnixNano()) // it took effect; the answer takes its time
				return pause(ctx, 4*time.Second)
			}
			return nil
		}})
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			<-ctx.Done()
			fenced.Store(time.Now().UnixNano())
			return ctx.Err()
		}
		a := w.start("a", nil, &changefeed.Options{HandlerTimeout: -1})
		time.Sleep(time.Second)
		w.put(1, 1)
		late.Store(true)
		time.Sleep(15 * time.Second)
		a.link.noStore.Store(true)
		time.Sleep(30 * time.Second)
		if d := time.Duration(fenced.Load() - landed.Load()); d > 18*time.Second {
			t.Errorf("the handler ran until %s after the last write took effect, want at most Expiry - Margin = 18 s", d)
		}
	})
}

// A caller that waits for the change waits for the next write.
func TestChangeDuringWriteWaitsForNextWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var slow atomic.Bool
		applied := make(chan struct{}, 1)
		w.store = memstore.New(&memstore.Options{After: func(ctx context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && slow.Swap(false) {
				applied <- struct{}{}
				return pause(ctx, 3*time.Second)
			}
			return nil
		}})
		saved := make(chan string, 1)
		w.start("a", changefeed.Manual(func(ctx context.Context, b *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			if err := checkpoint(ctx); err != nil {
				return err
			}
			saved <- w.leases()[0].Continuation
			return nil
		}), &changefeed.Options{PollMax: 500 * time.Millisecond})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Second)
		slow.Store(true)
		<-applied // a renewal is stored; its answer is on its way
		w.put(1, 1)
		if at := <-saved; at != `"1"` {
			t.Errorf("a checkpoint returned while the stored position was %q", at)
		}
	})
}

// Hosts continue when the store is back, even if its errors are marked permanent.
func TestHostsSurviveStoreOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		hosts := []*host{w.start("a", nil, nil), w.start("b", nil, nil)}
		eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["a"] == 2 && w.owners()["b"] == 2 })
		w.put(100, 20)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		for _, h := range hosts {
			h.link.denied.Store(true)
		}
		time.Sleep(10 * time.Minute)
		w.put(100, 20)
		time.Sleep(10 * time.Minute)
		if n := w.got.count(); n != 100 {
			t.Errorf("%d deliveries without a lease store", n)
		}
		for _, h := range hosts {
			h.link.denied.Store(false)
		}
		eventually(t, 30*time.Second, "delivered", func() bool { return w.got.distinct() == 200 })
		w.got.ordered(t)
	})
}

// The host recognizes its own write.
func TestLostRepliesCostNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var n atomic.Int64
		w.store = memstore.New(&memstore.Options{After: func(_ context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && n.Add(1)%3 == 0 {
				return errors.New("the answer got lost")
			}
			return nil
		}})
		var lost atomic.Int32
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) }}})
		for range 100 {
			w.put(10, 5)
			time.Sleep(3 * time.Second)
		}
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 1000 })
		if lost.Load() != 0 || w.got.count() != 1000 {
			t.Errorf("%d leases lost, %d deliveries of 1000", lost.Load(), w.got.count())
		}
	})
}

// Under load checkpoints are written once per interval and serve as renewals.
func TestCheckpointsAreCoalescedAndRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := w.start("a", nil, &changefeed.Options{PollMin: 10 * time.Millisecond})
		time.Sleep(time.Second)
		before := h.Requests().LeaseReplaces
		for range 1200 { // two minutes of changes
			w.put(5, 5)
			time.Sleep(100 * time.Millisecond)
		}
		if n := h.Requests().LeaseReplaces - before; n < 100 || n > 122 {
			t.Errorf("%d lease writes in 120 s of load, want one a second", n)
		}
		time.Sleep(10 * time.Second)
		before = h.Requests().LeaseReplaces
		time.Sleep(5 * time.Minute)
		if n := h.Requests().LeaseReplaces - before; n < 30 || n > 47 {
			t.Errorf("%d lease writes in 5 idle minutes, want one each 8 s", n)
		}
	})
}

// The position moves because a restart would otherwise read changes of other ranges again.
func TestCheckpointsMoveInIdleRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.start("a", nil, nil)
		for i := range 500 {
			w.feed.Put(memfeed.Document{Key: "one", ID: fmt.Sprint(i)})
		}
		time.Sleep(time.Minute)
		for _, l := range w.leases() {
			if l.Continuation != `"500"` {
				t.Errorf("lease %s is at %s, want 500", l.Token, l.Continuation)
			}
		}
	})
}

func TestFullPagesAreReadWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		first := w.start("a", nil, nil) // it makes the leases
		time.Sleep(time.Second)
		first.stop()
		w.put(20_000, 100)
		began := time.Now()
		w.start("a", nil, nil)
		eventually(t, time.Hour, "delivered", func() bool { return w.got.count() == 20_000 })
		if d := time.Since(began); d > 100*time.Millisecond {
			t.Errorf("200 full pages took %s of virtual time", d)
		}
	})
}

// A host sees an unfinished split, sleeps, and wakes when the children have split in turn
// and are gone. It must not create them again at the old position.
func TestHostThatSleptThroughASplitReplaysNothing(t *testing.T) {
	for _, deletes := range []bool{true, false, true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var a *host
			var crash atomic.Bool
			asleep := make(chan struct{})
			inner := memstore.New(&memstore.Options{
				Before: func(ctx context.Context, op memstore.Op) error {
					if !deletes && op.Kind == memstore.Delete {
						return errors.New("not allowed")
					}
					return nil
				},
				After: func(_ context.Context, op memstore.Op) error {
					if crash.Load() && op.Kind == memstore.Replace {
						crash.Store(false)
						a.crash() // right after it made the lease a split one
						return errCut
					}
					return nil
				},
			})
			w.store = inner
			a = w.start("a", nil, &changefeed.Options{CheckpointEvery: time.Hour})
			w.put(100, 30)
			eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
			time.Sleep(9 * time.Second) // the position is stored with a renewal
			w.feed.Split("20")
			crash.Store(true)
			time.Sleep(2 * time.Second)

			// The delayed host: its Creates of leases wait until the hour is over.
			late := &delayedStore{LeaseStore: inner, until: asleep}
			p, err := changefeed.New(w.feed, late, w.got, &changefeed.Options{Host: "late"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(5 * time.Second)

			w.start("b", nil, nil)
			w.put(100, 30)
			eventually(t, 2*time.Minute, "delivered", func() bool { return w.got.distinct() == 200 })
			w.feed.Split("10")
			w.feed.Split("30")
			w.put(100, 30)
			eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 300 })
			time.Sleep(time.Minute)
			w.feed.Merge("08") // the ranges of the children are physical again: nothing
			w.feed.Merge("28") // otherwise the reads would show that the leases are old
			n := w.got.count()
			close(asleep)
			time.Sleep(5 * time.Minute)
			w.put(10, 30)
			time.Sleep(time.Minute)
			if again := w.got.count() - n - 10; again != 0 {
				t.Errorf("deletes %t: %d changes were replayed after the helper woke", deletes, again)
			}
			for _, l := range w.leases() {
				if l.State != changefeed.LeaseLive {
					t.Errorf("deletes %t: lease %s is left %s", deletes, l.Token, l.State)
				}
			}
			w.got.ordered(t)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// delayedStore delays the first Create of a lease.
type delayedStore struct {
	changefeed.LeaseStore
	until chan struct{}
}

func (s *delayedStore) Create(ctx context.Context, r changefeed.Record) (string, error) {
	if len(r.ID) > 26 && r.ID[24:26] == ".." {
		<-s.until
	}
	return s.LeaseStore.Create(context.WithoutCancel(ctx), r)
}

// staleStore replies to the first Read of a lease with its first listed version.
type staleStore struct {
	changefeed.LeaseStore
	mu    sync.Mutex
	first map[string]changefeed.Record // guarded by mu
	stale atomic.Int32                 // old answers left
	given atomic.Int32
}

func (s *staleStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range records {
		if _, known := s.first[r.ID]; !known {
			s.first[r.ID] = r
		}
	}
	return records, err
}

func (s *staleStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	s.mu.Lock()
	old, known := s.first[id]
	s.mu.Unlock()
	if known && s.stale.Add(-1) >= 0 {
		s.given.Add(1)
		return old, nil
	}
	return s.LeaseStore.Read(ctx, id)
}

// The store may return the record from before this host's acquisition.
func TestStaleReadCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		store := &staleStore{LeaseStore: w.store, first: map[string]changefeed.Record{}}
		var lost atomic.Int32
		p, err := changefeed.New(w.feed, store, w.got, &changefeed.Options{Host: "a", Observer: &changefeed.Observer{
			LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		eventually(t, time.Minute, "owned", func() bool { return len(p.Lag()) == 1 })
		time.Sleep(time.Minute)
		store.stale.Store(1)
		if err := w.operator().Retry(t.Context()); err != nil { // the next write of the host meets its ETag
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if store.given.Load() != 1 || lost.Load() != 0 {
			t.Errorf("%d old answers, %d leases lost", store.given.Load(), lost.Load())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
