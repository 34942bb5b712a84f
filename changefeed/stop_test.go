package changefeed_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// A range that the policy stopped delivers nothing, neither what was read ahead nor
// what is written later, and reads nothing.
func TestAStoppedRangeDeliversNothing(t *testing.T) {
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

// What waits is the next owner's: a host that stops does not wait for it, and begins
// nothing that it has not begun.
func TestADrainDoesNotWaitForWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int64
		w.put(1, 1)
		a := w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			tries.Add(1)
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

// A drain begins no page, also if a lane is idle that has nothing to do for it.
func TestADrainBeginsNoPage(t *testing.T) {
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

// What a drain cuts short is no trouble of the range.
func TestADrainIsNoTrouble(t *testing.T) {
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
					t.Errorf("the lease tells %q, %q", l.Health, l.Error)
				}
			})
		})
	}
}

// What a worker was first told to stop for is why it gives its lease up, whatever comes while
// it waits for its handler.
func TestTheFirstOrderToStopStands(t *testing.T) {
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
