package changefeed_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/record"
)

// The hosts create the leases again at the positions that they remember.
func TestEmptiedLeaseStoreLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.start("a", nil, &changefeed.Options{Start: changefeed.FromNow()})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		w.put(100, 20)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(30 * time.Second)
		records, err := w.store.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		w.put(10, 20)
		for _, r := range records {
			for {
				fresh, err := w.store.Read(t.Context(), r.ID)
				if err != nil {
					break
				}
				if w.store.Delete(t.Context(), fresh.ID, fresh.ETag) == nil {
					break
				}
			}
		}
		w.put(10, 20)
		time.Sleep(12 * time.Second) // by now this host owns nothing; another one might still trust its lease
		if early, err := w.store.List(t.Context(), ""); err != nil || len(early) > 0 {
			t.Errorf("%d records made within Expiry, error %v", len(early), err)
		}
		w.put(10, 20)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 130 })
		if n := w.got.count(); n > 160 {
			t.Errorf("%d deliveries of 130 changes: the remembered positions were not used", n)
		}
		for _, l := range w.leases() {
			if l.Epoch < 2 {
				t.Errorf("lease %s has epoch %d, as before it was lost", l.Token, l.Epoch)
			}
		}
		record.Write(t, record.Result{
			Fault: "F23", Name: "every lease deleted while hosts run", Injections: 1, Of: 1, Events: 130,
			DuplicatesSent: int64(w.got.count() - 130), Note: "positions are remembered by the hosts that run; a fleet started on an empty store begins at Options.Start",
		})
	})
}

// One lost lease is created again at its position.
func TestLostLeaseIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var repaired atomic.Int32
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{GapRepaired: func(changefeed.GapRepaired) { repaired.Add(1) }}})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		w.put(100, 40)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(30 * time.Second)
		l := w.leases()[1]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		w.put(100, 40)
		took := eventually(t, time.Minute, "repaired", func() bool { return repaired.Load() == 1 })
		if took < 20*time.Second {
			t.Errorf("repaired after %s: a host may still trust the lease that was lost", took)
		}
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		if again := w.leases()[1]; again.Epoch <= l.Epoch {
			t.Errorf("epoch %d, and %d before it was lost", again.Epoch, l.Epoch)
		}
		w.put(100, 40)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 300 })
		if n := w.got.count(); n > 360 {
			t.Errorf("%d deliveries of 300 changes", n)
		}
	})
}

// A request of an operator survives the loss of its lease. A paused range would otherwise be delivered, and a restored
// container would be read on from a position of its former history.
func TestRepairedLeaseKeepsTheRequestOfAnOperator(t *testing.T) {
	for _, ranges := range []int{2, packedRanges} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, ranges)
			w.start("a", nil, nil)
			eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == ranges })
			if err := w.operator().PauseLeases(t.Context(), w.leases()[1].Token); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			l := w.leases()[1]
			if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
				t.Fatal(err)
			}
			w.put(20*ranges, 10*ranges)
			eventually(t, time.Hour, "owned again", func() bool { leases := w.leases(); return len(leases) == ranges && leases[1].Epoch > l.Epoch })
			time.Sleep(2 * time.Minute)
			waiting := 0
			for i := range 20 * ranges {
				if l.Range.Has(memfeed.EPK(fmt.Sprintf("key-%d", i%(10*ranges)))) {
					waiting++
				}
			}
			if got := w.got.count(); got != 20*ranges-waiting || !w.leases()[1].Request.Paused {
				t.Errorf("%d ranges: %d changes delivered, of which %d are in a paused range", ranges, got, waiting)
			}
		})
	}
}

// packedRanges is the number of leases from which on a host keeps them in compressed form.
const packedRanges = 100

// A lease that was lost while no host ran is created again at the processor's start, not at
// the beginning of the container.
func TestForgottenLeaseStartsAtTheProcessorsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(100, 40)
		time.Sleep(time.Hour)
		start := time.Now()
		a := w.start("a", nil, &changefeed.Options{Start: changefeed.FromTime(start)})
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 4 })
		a.stop()
		l := w.leases()[1]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		var repaired atomic.Pointer[changefeed.GapRepaired]
		w.start("b", nil, &changefeed.Options{Observer: &changefeed.Observer{GapRepaired: func(e changefeed.GapRepaired) { repaired.Store(&e) }}})
		w.put(100, 40)
		eventually(t, 5*time.Minute, "delivered", func() bool { return w.got.distinct() >= 100 })
		if e := repaired.Load(); e == nil || e.Range != l.Range || !e.From.Since.Equal(start) {
			t.Errorf("repaired %+v, want %s from %s", e, l.Range, start)
		}
		if n := w.got.count(); n != 100 {
			t.Errorf("%d deliveries, want the 100 changes since the start", n)
		}
	})
}

// The wall clock may be wrong. A lease that is lost before its position was known starts
// well before it.
func TestLostLeaseOfFromNowStartsBeforeWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, &changefeed.Options{
			Start: changefeed.FromNow(), Now: func() time.Time { return time.Now().Add(30 * time.Minute) },
		})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		w.put(10, 10)
		l := w.leases()[0]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		w.start("b", nil, nil)
		eventually(t, 2*time.Minute, "all that was written since", func() bool { return w.got.distinct() == 10 })
	})
}

// Two neighbors that are lost together continue at their own positions, with higher epochs.
func TestLostNeighborsAreRepairedAtTheirPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{}})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		for range 3 {
			if err := w.operator().Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		w.put(1000, 40)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1000 })
		time.Sleep(30 * time.Second)
		before := map[string]int64{}
		for _, l := range w.leases()[1:3] {
			before[l.Token] = l.Epoch
			if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 2*time.Minute, "owned", func() bool { return w.owners()["a"] == 4 })
		time.Sleep(time.Minute)
		if n := w.got.count(); n > 1000 {
			t.Errorf("%d changes were delivered again, although the positions are remembered", n-1000)
		}
		for _, l := range w.leases() {
			if l.Epoch <= before[l.Token] {
				t.Errorf("lease %s has epoch %d, and %d before it was lost", l.Token, l.Epoch, before[l.Token])
			}
		}
	})
}

// A listing that lacks one record, of all leases, must not end balancing without a word.
func TestListingWithoutTheInfoRecordIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var reports atomic.Int64
		store := &forgetful{LeaseStore: w.store}
		p, err := changefeed.New(w.feed, store, w.got, &changefeed.Options{Host: "b", Observer: &changefeed.Observer{
			RangeUnread: func(changefeed.RangeUnread) { reports.Add(1) },
			LeaseError:  func(changefeed.LeaseError) { reports.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		a := w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{}})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		go func() { ended <- p.Run(ctx) }()
		eventually(t, time.Minute, "shared", func() bool { return w.owners()["b"] == 1 })
		time.Sleep(2 * time.Minute)
		store.lacks.Store(true)
		time.Sleep(time.Minute)
		a.crash()
		w.put(100, 20)
		time.Sleep(30 * time.Minute)
		if n := w.got.count(); n < 100 || reports.Load() == 0 {
			t.Errorf("half an hour after the other host crashed, %d of 100 changes are delivered, and there are %d reports", n, reports.Load())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// forgetful is a lease store whose listings may lack the info record.
type forgetful struct {
	changefeed.LeaseStore
	lacks atomic.Bool
}

func (s *forgetful) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	records, err := s.LeaseStore.List(ctx, prefix)
	return slices.DeleteFunc(records, func(r changefeed.Record) bool {
		return s.lacks.Load() && strings.HasSuffix(r.ID, ".info")
	}), err
}
