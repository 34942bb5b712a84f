package changefeed_test

import (
	"bytes"
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
)

func TestPauseHoldsAllHostsUntilResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.start("a", nil, nil)
		w.start("b", nil, nil)
		eventually(t, 10*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 2 && o["b"] == 2 })
		op := w.operator()
		for range 2 {
			if err := op.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(7 * time.Second)
		if paused, err := op.Paused(t.Context()); !paused || err != nil {
			t.Errorf("paused %t, error %v", paused, err)
		}
		w.put(100, 20)
		time.Sleep(5 * time.Minute)
		if n := w.got.count(); n != 0 {
			t.Errorf("%d deliveries while paused", n)
		}
		if o := w.owners(); o["a"] != 2 || o["b"] != 2 {
			t.Errorf("owners while paused: %v", o)
		}
		for range 2 {
			if err := op.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 8*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		w.got.ordered(t)
	})
}

func TestPauseOfOneLeaseSurvivesItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		op := w.operator()
		held := w.leases()[0]
		if err := op.PauseLeases(t.Context(), held.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Second)
		w.put(100, 20)
		time.Sleep(time.Minute)
		n := w.got.count()
		if n == 0 || n == 100 {
			t.Errorf("%d deliveries with one of two leases paused", n)
		}
		a.stop()
		w.start("b", nil, nil)
		time.Sleep(time.Minute)
		if w.got.count() != n {
			t.Error("another owner delivered from a paused lease")
		}
		if err := op.ResumeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 8*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		if err := op.PauseLeases(t.Context(), "no such lease"); err == nil {
			t.Error("pausing a lease that does not exist is no error")
		}
	})
}

// A lease that is paused while it splits has paused children.
func TestChildrenOfAPausedLeaseArePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var slow atomic.Bool
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			if slow.Swap(false) {
				return pause(ctx, 5*time.Second)
			}
			return nil
		}
		w.start("a", nil, &changefeed.Options{PollMax: time.Second, CheckpointEvery: time.Hour, Expiry: time.Hour})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(3 * time.Second)
		slow.Store(true)
		w.put(1, 1)
		time.Sleep(2 * time.Second)
		w.feed.Split("20") // noticed at once; the page in hand is finished first
		time.Sleep(2 * time.Second)
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "split", func() bool { return w.owners()["a"] == 2 })
		w.put(20, 10)
		time.Sleep(time.Minute)
		for _, l := range w.leases() {
			if !l.Request.Paused {
				t.Errorf("lease %s, child of a paused one, is not paused", l.Token)
			}
		}
		if n := w.got.count(); n != 1 {
			t.Errorf("%d deliveries of paused leases", n-1)
		}
		if err := w.operator().ResumeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Minute, "delivered", func() bool { return w.got.count() == 21 })
	})
}

func TestRewindDeliversAgainInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, &changefeed.Options{Lanes: 4})
		w.put(100, 20)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(time.Hour)
		since := time.Now()
		w.put(50, 20)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 150 })
		time.Sleep(10 * time.Second) // until the checkpoints are written
		saved, err := w.operator().Export(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		op := w.operator()
		rewind := func(to changefeed.Start, n int, leases ...string) {
			t.Helper()
			before := w.got.count()
			time.Sleep(10 * time.Second)
			if err := op.Rewind(t.Context(), to, leases...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if again := w.got.count() - before; again != n {
				t.Errorf("%d deliveries after a rewind to %v, want %d", again, to, n)
			}
		}
		rewind(changefeed.FromBeginning(), 150)
		rewind(changefeed.FromTime(since), 50)
		rewind(changefeed.FromNow(), 0)
		rewind(changefeed.FromTokens(saved...), 0)
		one := w.leases()[1]
		low := 0
		for i := range 150 {
			if one.Range.Has(memfeed.EPK(keyOf(i))) {
				low++
			}
		}
		rewind(changefeed.FromBeginning(), low, one.Token)
		w.put(10, 20)
		eventually(t, time.Minute, "later changes go on", func() bool { return w.got.distinct() == 160 })
		for _, l := range w.leases() {
			if l.Epoch != 1 || l.Request.Rewind != nil {
				t.Errorf("lease %s: epoch %d, request %+v; a rewind costs no ownership", l.Token, l.Epoch, l.Request)
			}
		}
	})
}

func keyOf(i int) string {
	if i >= 100 {
		i -= 100
	}
	return "key-" + string(rune('0'+i%20/10)) + string(rune('0'+i%10))
}

func TestReleaseMovesALeaseThroughTheBalancer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		l := w.leases()[0]
		if err := w.operator().Release(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "acquired again", func() bool {
			now := w.leases()[0]
			return now.Owner == "a" && now.Epoch == l.Epoch+1 && !now.Request.Release
		})
	})
}

// Neither write is lost.
func TestOperatorAndOwnerWriteAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, &changefeed.Options{CheckpointEvery: -1, MaxItems: 1})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 50 {
				w.put(10, 10)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		op := w.operator()
		for range 20 {
			if err := errors.Join(op.PauseLeases(t.Context()), op.ResumeLeases(t.Context())); err != nil {
				t.Fatal(err)
			}
			time.Sleep(70 * time.Millisecond)
		}
		<-done
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 500 })
		w.got.ordered(t)
	})
}

func TestRunAgainAndOnlyOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		p, err := changefeed.New(w.feed, w.store, w.got, &changefeed.Options{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			w.put(10, 2)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 10*(i+1) })
			if err := p.Run(ctx); !errors.Is(err, changefeed.ErrRunning) {
				t.Errorf("a second Run: error %v", err)
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// splittingStore is a lease store in which a lease is split just before it is replaced.
type splittingStore struct {
	changefeed.LeaseStore
	split sync.Once
}

func (s *splittingStore) Replace(ctx context.Context, r changefeed.Record) (_ string, err error) {
	s.split.Do(func() { err = s.splitLease(ctx, r.ID) })
	if err != nil {
		return "", err
	}
	return s.LeaseStore.Replace(ctx, r)
}

func (s *splittingStore) splitLease(ctx context.Context, id string) error {
	stored, err := s.Read(ctx, id)
	if err != nil {
		return err
	}
	stored.Body = bytes.Replace(stored.Body, []byte(`"properties":{`), []byte(`"properties":{"state":"split",`), 1)
	_, err = s.LeaseStore.Replace(ctx, stored)
	return err
}

// A request for a split lease is refused because no owner would carry it out.
func TestSplitLeaseRefusesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		op := changefeed.NewOperator(w.feed, &splittingStore{LeaseStore: w.store}, nil)
		asked := time.Now()
		if err := op.PauseLeases(t.Context()); err == nil || !strings.Contains(err.Error(), "split") {
			t.Errorf("error %v, want that the lease was split", err)
		}
		if waited := time.Since(asked); waited < 5*time.Second || waited > 20*time.Second {
			t.Errorf("it waited %s for the split, want about 10 s", waited)
		}
		if l := w.leases()[0]; l.State != changefeed.LeaseSplit || l.Request.Paused {
			t.Errorf("the lease is %+v", l)
		}
	})
}

// slowWrites is a lease store whose writes take 200 ms.
type slowWrites struct{ changefeed.LeaseStore }

func (s slowWrites) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if err := pause(ctx, 200*time.Millisecond); err != nil {
		return "", err
	}
	return s.LeaseStore.Replace(ctx, r)
}

// A command ends after half a minute, and must not have restarted some of many leases by then.
func TestRequestsForManyLeasesTakeNoLongerForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 300)
		a := w.start("a", nil, nil)
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 300 })
		a.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := changefeed.NewOperator(w.feed, slowWrites{w.store}, nil).Restart(ctx)
		for _, l := range w.leases() {
			if l.Request.History == "" {
				t.Fatalf("lease %s is not restarted: %v", l.Token, err)
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func TestLagOfSplitRangeIsTheSumOfItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(20, 20)
		time.Sleep(time.Hour)
		since := time.Now()
		w.put(20, 20)
		id := "changefeedmemory_db_coll..-FF"
		create(t, w, id, fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":"-FF","FeedRange":{"Range":{"min":"","max":"FF"}},"Owner":null,"ContinuationToken":"\"0\"","properties":{"unread":"true","since":%q}}`,
			id, since.UTC().Format(time.RFC3339)))
		w.feed.Split("20")
		want := int64(0)
		for _, half := range []changefeed.FeedRange{{Min: "", Max: "20"}, {Min: "20", Max: "FF"}} {
			page, err := w.feed.Read(t.Context(), changefeed.ReadRequest{Range: half, Since: since, MaxItems: 1})
			if err != nil || len(page.Items) != 1 || page.Items[0].LSN <= 20 {
				t.Fatalf("%+v, %v", page, err)
			}
			want += page.EndLSN - page.Items[0].LSN + 1
		}
		lags, err := w.operator().Lag(t.Context())
		if err != nil || len(lags) != 1 || lags[0].Transactions != want || !lags[0].Known {
			t.Errorf("lag %+v, %v; want %d transactions", lags, err, want)
		}
	})
}
