package changefeed_test

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOneHostDeliversEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(1000, 50)
		h := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "all changes delivered", func() bool { return w.got.count() == 1000 })
		w.put(500, 50)
		eventually(t, 5*time.Second, "later changes delivered", func() bool { return w.got.count() == 1500 })
		w.got.ordered(t)
		h.stop()
		for _, l := range w.leases() {
			if l.Owner != "" || l.Continuation != `"1500"` && l.LSN == 0 {
				t.Errorf("lease after the drain: owner %q, continuation %s", l.Owner, l.Continuation)
			}
		}
		w.start("a", nil, nil)
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 1500 {
			t.Errorf("%d deliveries after a restart, want 1500: a drained host redelivers nothing", n)
		}
	})
}

func TestTwoHostsShareAndTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		a := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "a owns all", func() bool { return w.owners()["a"] == 8 })
		b := w.start("b", nil, nil)
		took := eventually(t, 15*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 4 && o["b"] == 4 })
		t.Logf("shared after %s", took)
		w.put(100, 10)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		a.stop()
		took = eventually(t, 10*time.Second, "b owns all", func() bool { return w.owners()["b"] == 8 })
		t.Logf("drained to b after %s", took)
		w.put(100, 10)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 200 })
		w.got.ordered(t)
		b.stop()
		if n := w.got.count(); n != 200 {
			t.Errorf("%d deliveries, want 200: balancing and draining redeliver nothing", n)
		}
	})
}

// The cycle of a host alone is slow while nothing changes.
func TestHostAloneNoticesTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		for n := range 4 { // at any time between two cycles
			if err := w.operator().Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			w.put(1, 1)
			time.Sleep(time.Minute)
			if got := w.got.count(); got != n {
				t.Fatalf("%d deliveries before the end of pause %d", got, n)
			}
			if err := w.operator().Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, 7*time.Second, "delivered", func() bool { return w.got.count() > n })
		}
	})
}
