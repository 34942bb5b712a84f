package changefeed_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
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
