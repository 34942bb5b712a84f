package changefeed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// A lease handed to a host waits for it. If that host is gone, any host acquires it.
func TestLeaseHandedToDeadHostIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var named atomic.Int32
		a := w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseReleased: func(e changefeed.LeaseReleased) {
			if e.To == "b" {
				named.Add(1)
			}
		}}})
		b := w.start("b", nil, nil)
		eventually(t, 10*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 2 && o["b"] == 2 })
		time.Sleep(10 * time.Second)
		named.Store(0)
		b.crash()
		a.stop() // it has not noticed yet
		meant := 0
		for _, l := range w.leases() {
			if strings.HasPrefix(string(l.Handoff), "b/") {
				meant++
			}
		}
		if named.Load() != 2 || meant != 2 {
			t.Fatalf("%d leases released to b, %d records say so; want 2", named.Load(), meant)
		}
		w.start("c", nil, nil)
		time.Sleep(5 * time.Second)
		if n := w.owners()["c"]; n != 0 {
			t.Errorf("c has %d leases, which wait for b", n)
		}
		eventually(t, 30*time.Second, "taken by c", func() bool { return w.owners()["c"] == 4 })
	})
}

func TestDrainDeadlineAppliesToEarlierReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var busy atomic.Bool
		var calls atomic.Int32
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			if busy.Load() {
				calls.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		var end endings
		a := w.start("a", nil, &changefeed.Options{Renew: 2 * time.Second, PollMax: 500 * time.Millisecond, Observer: end.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		w.start("b", nil, &changefeed.Options{PollMax: 500 * time.Millisecond})
		eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["b"] == 1 })
		time.Sleep(10 * time.Minute) // now a leaving host announces it first
		end.released.Store(0)
		busy.Store(true)
		w.put(20, 20)
		eventually(t, 10*time.Second, "both are busy", func() bool { return calls.Load() == 2 })
		began := time.Now()
		a.end()
		time.Sleep(time.Second)
		for _, l := range w.leases() {
			if l.Owner == "a" {
				if err := w.operator().Release(t.Context(), l.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.stop()
		busy.Store(false)
		if took := time.Since(began); took > 10*time.Second+100*time.Millisecond {
			t.Errorf("the drain took %s, want DrainTimeout = 10 s", took)
		}
		if end.lost.Load() != 0 || end.released.Load() != 1 {
			t.Errorf("%d leases lost, %d released, want one released", end.lost.Load(), end.released.Load())
		}
	})
}

// The record of a crashed host is deleted later.
func TestGoneHostsLeaveNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		hosts := func() int {
			h, err := w.operator().Hosts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return len(h)
		}
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		spare := w.start("b", nil, nil)
		eventually(t, 5*time.Minute, "a spare host says that it is there", func() bool { return hosts() == 1 })
		time.Sleep(15 * time.Minute)
		if hosts() != 1 {
			t.Error("a spare host that lives is not listed any more")
		}
		spare.stop()
		if hosts() != 0 {
			t.Error("a host that has left is still listed")
		}
		spare = w.start("c", nil, nil)
		eventually(t, 5*time.Minute, "a spare host says that it is there", func() bool { return hosts() == 1 })
		spare.crash()
		eventually(t, 2*time.Hour, "swept", func() bool { return hosts() == 0 })
	})
}

// The host does not wait for its next cycle.
func TestHostAloneReacquiresReleasedLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var released, acquired atomic.Int64
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			LeaseReleased: func(changefeed.LeaseReleased) { released.CompareAndSwap(0, time.Now().UnixNano()) },
			LeaseAcquired: func(changefeed.LeaseAcquired) { acquired.Store(time.Now().UnixNano()) },
		}})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(10 * time.Minute)
		if err := w.operator().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 2*time.Minute, "taken again", func() bool { return released.Load() > 0 && acquired.Load() >= released.Load() })
		if d := time.Duration(acquired.Load() - released.Load()); d > time.Second {
			t.Errorf("taken again after %s", d)
		}
	})
}

// The lease is released with its reason, not lost. The next owner, here the same host,
// carries out the request.
func TestHandlerThatIgnoresPauseOrRewindReleasesTheLease(t *testing.T) {
	for what, ask := range map[string]func(ctx context.Context, op *changefeed.Operator, id string) error{
		"pause": func(ctx context.Context, op *changefeed.Operator, id string) error { return op.PauseLeases(ctx, id) },
		"rewind": func(ctx context.Context, op *changefeed.Operator, _ string) error {
			return op.Rewind(ctx, changefeed.FromBeginning())
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var endless atomic.Bool
			endless.Store(true)
			w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
				if endless.Swap(false) {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			var mu sync.Mutex
			var reported []string
			tell := func(s string) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, s)
			}
			w.start("a", nil, &changefeed.Options{DrainTimeout: 5 * time.Second, HandlerTimeout: -1, Observer: &changefeed.Observer{
				LeaseReleased: func(e changefeed.LeaseReleased) { tell("released: " + e.Reason) },
				LeaseLost:     func(e changefeed.LeaseLost) { tell("lost: " + e.Err.Error()) },
			}})
			w.put(1, 1)
			time.Sleep(10 * time.Second) // the handler has it
			if err := ask(t.Context(), w.operator(), w.leases()[0].ID); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			mu.Lock()
			if len(reported) == 0 || slices.ContainsFunc(reported, func(s string) bool { return s != "released: a handler did not end in time" }) {
				t.Errorf("%s: reported %q", what, reported)
			}
			mu.Unlock()
			if err := w.operator().ResumeLeases(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 1 })
		})
	}
}

// If no other host has acquired it, the host does not wait for its own expiry.
func TestFencedHostReacquiresItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var down atomic.Bool
		w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
			if down.Load() && op.Kind == memstore.Replace {
				return errors.New("not now")
			}
			return nil
		}})
		var lost, acquired atomic.Int64
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			LeaseLost:     func(changefeed.LeaseLost) { lost.Store(time.Now().UnixNano()); down.Store(false) },
			LeaseAcquired: func(changefeed.LeaseAcquired) { acquired.Store(time.Now().UnixNano()) },
		}})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Minute)
		down.Store(true)
		eventually(t, 2*time.Minute, "lost and owned again", func() bool { return lost.Load() > 0 && acquired.Load() >= lost.Load() })
		if d := time.Duration(acquired.Load() - lost.Load()); d > time.Second {
			t.Errorf("owned again after %s", d)
		}
	})
}

func TestListingBacksOffDuringStoreOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.link.noStore.Store(true)
		before := a.Requests().LeaseLists
		time.Sleep(10 * time.Minute)
		if n := a.Requests().LeaseLists - before; n > 200 || n < 60 {
			t.Errorf("%d listings in ten minutes, want one each Acquire = 5 s", n)
		}
		a.link.noStore.Store(false)
		time.Sleep(10 * time.Minute)
		a.link.noStore.Store(true)
		before = a.Requests().LeaseLists
		eventually(t, 2*time.Minute, "a listing", func() bool { return a.Requests().LeaseLists > before })
		time.Sleep(2 * time.Second)
		if n := a.Requests().LeaseLists - before; n < 3 {
			t.Errorf("%d listings in two seconds after the store replied, want pauses that begin small", n)
		}
	})
}

func TestHostAloneLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		time.Sleep(10 * time.Minute)
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("left after %s", took)
		}
	})
}

// A release waits for the handler for DrainTimeout.
func TestReleaseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ended := make(chan error, 1)
		var began atomic.Int64
		a := w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
			if !began.CompareAndSwap(0, time.Now().UnixNano()) {
				return nil
			}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		}), &changefeed.Options{Renew: time.Second, DrainTimeout: 5 * time.Second, HandlerTimeout: -1})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.put(1, 1)
		eventually(t, time.Minute, "called", func() bool { return began.Load() > 0 })
		if err := w.operator().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		if err := <-ended; !errors.Is(err, changefeed.ErrDraining) {
			t.Errorf("the handler's context ended with %v", err)
		}
		if took := time.Since(asked); took > 5*time.Second+1200*time.Millisecond {
			t.Errorf("the handler ended after %s, want a renewal and DrainTimeout", took)
		}
		a.end()
	})
}
