package changefeed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

func TestOutageSpendsNoAttempts(t *testing.T) {
	for name, down := range map[string]error{
		"unnamed":     errors.New("the broker says no"),
		"with a time": nil,
		"timeout":     context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3)
				var g deadLetters
				var broken atomic.Bool
				broken.Store(true)
				var calls atomic.Int64
				var stuck atomic.Int32
				w.got.before = func(context.Context, *changefeed.Batch) error {
					calls.Add(1)
					switch {
					case !broken.Load():
						return nil
					case down == nil:
						return changefeed.WaitUntil(time.Now().Add(10*time.Second), errors.New("the broker is down"))
					}
					return down
				}
				w.put(300, 100)
				w.start("a", nil, &changefeed.Options{Lanes: 4, DeadLetter: g.store, Observer: &changefeed.Observer{
					RangeStuck: func(changefeed.RangeStuck) { stuck.Add(1) },
				}})
				time.Sleep(time.Hour)
				for _, l := range w.leases() {
					if len(l.Ahead.Held) > 0 || l.Health != changefeed.Retrying || l.Error == "" || l.Failures < 5 || time.Since(l.Failing) < 50*time.Minute {
						t.Errorf("lease in an outage: health %q, %d failures since %s, %q, held %v", l.Health, l.Failures, l.Failing, l.Error, l.Ahead.Held)
					}
				}
				if stuck.Load() != 3 {
					t.Errorf("%d ranges reported stuck, want 3", stuck.Load())
				}
				if n := calls.Load(); n > 5_000 {
					t.Errorf("%d calls in an hour of outage", n)
				}
				broken.Store(false)
				eventually(t, time.Minute, "all delivered", func() bool { return w.got.distinct() == 300 })
				if g.count() != 0 {
					t.Errorf("%d documents dead-lettered by an outage", g.count())
				}
				w.got.ordered(t)
				eventually(t, time.Minute, "healthy", func() bool {
					for _, l := range w.leases() {
						if l.Health != changefeed.Healthy {
							return false
						}
					}
					return true
				})
			})
		})
	}
}

// An outage may begin at any call, also while a poison document is being isolated. Only
// that document is ever dead-lettered. With CHANGEFEED_SEEDS=60 an outage begins at each of the first 60
// calls, and five times more at those that first attempt doc-57, because the order of the lanes differs.
func TestOutageBeginsAtAnyMoment(t *testing.T) {
	first, moments := seeds(t)
	var onsets []int32 // in calls of the handler
	step := max(1, 60/min(60, int32(moments)))
	for after := int32(first) % step; after < 60; after += step {
		onsets = append(onsets, after)
	}
	for range max(1, 5/step) {
		for after := range int32(8) {
			onsets = append(onsets, 14+after)
		}
	}
	for _, after := range onsets {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			h := newPickyHandler(hasID("doc-57"))
			var calls atomic.Int32
			began := time.Now()
			h.before = func(context.Context, *changefeed.Batch) error { return nil }
			var g deadLetters
			w.put(100, 30)
			down := func() bool { return calls.Load() > after && time.Since(began) < 30*time.Minute }
			w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
				if calls.Add(1); down() {
					return errors.New("everything fails")
				}
				return h.Handle(ctx, b)
			}), &changefeed.Options{Lanes: 3, MaxItems: 25, DeadLetter: g.store})
			// A document that fails alone cannot be distinguished from an outage until
			// another document is handled, so changes keep coming.
			for range 40 {
				time.Sleep(time.Minute)
				w.put(1, 30)
			}
			eventually(t, 20*time.Minute, "delivered", func() bool { return h.distinct() == 139 })
			if g.count() != 1 || g.letters[0].ID != "doc-57" {
				t.Fatalf("outage after call %d: %d dead letters", after, g.count())
			}
			h.ordered(t)
		})
	}
}

func TestOutageDeadLettersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var g deadLetters
		var down atomic.Bool
		got := newLedger()
		w.put(20, 5)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if down.Load() {
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute, Lanes: 4, MaxItems: 20, ReadAheadItems: 100})
		eventually(t, time.Minute, "handled before the outage", func() bool { return got.distinct() == 20 })
		down.Store(true)
		w.put(500, 50)
		time.Sleep(3 * time.Hour)
		down.Store(false)
		eventually(t, 2*time.Minute, "all handled", func() bool { return got.distinct() == 520 })
		if g.count() != 0 {
			t.Errorf("%d documents were dead-lettered", g.count())
		}
		got.once(t)
	})
}

// outage is a handler that fails while it is down.
type outage struct {
	got   *ledger
	down  atomic.Bool
	calls atomic.Int64
}

func (o *outage) Handle(_ context.Context, b *changefeed.Batch) error {
	o.calls.Add(1)
	if o.down.Load() {
		return errNotNow
	}
	for i := range b.Items {
		o.got.note(&b.Items[i])
	}
	return nil
}

// One document is retried, then two, then more. The next outage begins with short pauses
// again.
func TestRetriesGrowAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		h := &outage{got: got}
		h.down.Store(true)
		w.put(400, 400)
		w.start("a", h, &changefeed.Options{MaxItems: 100})
		time.Sleep(20 * time.Minute)
		h.down.Store(false)
		before := h.calls.Load()
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 400 })
		if n := h.calls.Load() - before; n > 40 {
			t.Errorf("%d calls for 400 documents", n)
		}
		h.down.Store(true)
		w.put(1, 1)
		before = h.calls.Load()
		eventually(t, time.Minute, "down again", func() bool { return h.calls.Load() > before })
		time.Sleep(time.Second)
		h.down.Store(false)
		eventually(t, 5*time.Second, "handled soon after a short outage", func() bool { return got.distinct() == 401 })
	})
}
