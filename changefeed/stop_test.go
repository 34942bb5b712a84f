package changefeed_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// After the poison policy stops it, the range reads nothing, and delivers neither pages
// read ahead nor later changes.
func TestStoppedRangeDeliversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var reads atomic.Int64
		w.put(100, 100) // there is room for all: only the stop can end the reading
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				if idOf(&b.Items[i]) == "doc-1" {
					b.Answer(i, changefeed.Refuse(errNotNow))
					continue
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			if len(b.Items) > 1 {
				return pause(ctx, time.Second)
			}
			return nil
		}), &changefeed.Options{MaxAttempts: 2, MaxItems: 10, ReadAheadItems: 1000, Observer: &changefeed.Observer{
			PageRead: func(changefeed.PageRead) { reads.Add(1) },
		}})
		eventually(t, time.Minute, "stopped", func() bool { l := w.leases(); return len(l) == 1 && l[0].Health == changefeed.Stopped })
		time.Sleep(2 * time.Second)
		handled, read := got.distinct(), reads.Load()
		w.put(50, 50)
		time.Sleep(10 * time.Minute)
		if handled > 29 || got.distinct() != handled || reads.Load() != read {
			t.Errorf("%d handled when it stopped, %d later; %d reads later", handled, got.distinct(), reads.Load()-read)
		}
	})
}

// Held keys are left to the next owner, and nothing new is begun.
func TestDrainDoesNotWaitForHeldKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int64
		w.put(1, 1)
		a := w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			if tries.Add(1) > 10_000 { // retries without a pause would never end
				return nil
			}
			return errNotNow
		}), &changefeed.Options{RetryMax: time.Second, DrainTimeout: time.Minute})
		eventually(t, time.Minute, "tried", func() bool { return tries.Load() > 5 })
		before, began := tries.Load(), time.Now()
		a.stop()
		if took := time.Since(began); took > time.Second || tries.Load() != before {
			t.Errorf("the drain took %s, with %d more tries", took, tries.Load()-before)
		}
	})
}

// No page is begun even if a lane is idle.
func TestDrainBeginsNoPage(t *testing.T) {
	for _, lanes := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { return pause(ctx, time.Second) }
			w.put(100, 1)
			a := w.start("a", nil, &changefeed.Options{Lanes: lanes, MaxItems: 10, ReadAheadItems: 100, DrainTimeout: time.Minute})
			eventually(t, time.Minute, "begun", func() bool { return w.got.count() == 10 })
			began := time.Now()
			a.stop()
			if took := time.Since(began); took > 2*time.Second || w.got.count() > 20 {
				t.Errorf("%d lanes: the drain took %s, %d documents were handled", lanes, took, w.got.count())
			}
		})
	}
}

func TestDrainCausesNoTrouble(t *testing.T) {
	for name, handle := range map[string]func(ctx context.Context) error{
		"ended": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"fails": func(context.Context) error { time.Sleep(2 * time.Second); return errNotNow },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				begun := make(chan struct{})
				var once sync.Once
				w.put(1, 1)
				a := w.start("a", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
					once.Do(func() { close(begun) })
					return handle(ctx)
				}), &changefeed.Options{DrainTimeout: 5 * time.Second})
				<-begun
				a.stop()
				if l := w.leases()[0]; l.Health != changefeed.Healthy || l.Error != "" {
					t.Errorf("the lease has %q, %q", l.Health, l.Error)
				}
			})
		})
	}
}

// It is the reported reason, whatever comes while the worker waits for its handler.
func TestFirstStopOrderWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		begun, finish := make(chan struct{}), make(chan struct{})
		w.got.before = func(context.Context, *changefeed.Batch) error {
			close(begun)
			<-finish
			return nil
		}
		w.put(1, 1)
		var reasons []string
		a := w.start("a", nil, &changefeed.Options{DrainTimeout: time.Minute, Observer: &changefeed.Observer{
			LeaseReleased: func(e changefeed.LeaseReleased) { reasons = append(reasons, e.Reason) },
		}})
		<-begun
		if err := w.operator().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // it is seen and waits for the handler
		time.AfterFunc(time.Second, func() { close(finish) })
		a.stop()
		if !slices.Equal(reasons, []string{"operator"}) {
			t.Errorf("released for %q, want once for the operator", reasons)
		}
	})
}

func TestDrainHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		cause := make(chan error, 1)
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		}
		w.put(1, 1)
		var end endings
		h := w.start("a", nil, &changefeed.Options{DrainTimeout: 4 * time.Second, Observer: end.observer()})
		time.Sleep(5 * time.Second)
		began := time.Now()
		h.stop()
		if d := time.Since(began); d < 4*time.Second || d > 5*time.Second {
			t.Errorf("drained after %s, want 4 s", d)
		}
		if err := <-cause; !errors.Is(err, changefeed.ErrDraining) {
			t.Errorf("cause %v", err)
		}
		if l := w.leases()[0]; l.Owner != "" || l.Continuation != "" {
			t.Errorf("lease after the drain: owner %q, checkpoint %s", l.Owner, l.Continuation)
		}
		end.check(t, w, 1)
	})
}

func TestDrainFinishesPagesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { return pause(ctx, 3*time.Second) }
		w.put(100, 5)
		h := w.start("a", nil, &changefeed.Options{MaxItems: 10})
		time.Sleep(4 * time.Second)
		h.stop()
		n := w.got.count()
		if n != 20 {
			t.Errorf("%d delivered, want the page in flight finished and no other begun", n)
		}
		if l := w.leases()[0]; l.Continuation != `"20"` {
			t.Errorf("checkpoint %s, want 20", l.Continuation)
		}
		w.got.before = nil
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() >= 100 })
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 100 {
			t.Errorf("%d deliveries of 100 changes", n)
		}
	})
}
