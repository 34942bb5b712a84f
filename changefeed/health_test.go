package changefeed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

// The cause stays on the lease when another host takes it over, until a delivery succeeds.
func TestCauseOfFailureSurvivesTakeover(t *testing.T) {
	for name, cure := range map[string]bool{"then it succeeds": true, "then nothing is left": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				var away, hang atomic.Bool
				away.Store(true)
				handler := changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error {
					if hang.Load() {
						<-ctx.Done() // it fails no more, and does not succeed either
						return ctx.Err()
					}
					if away.Load() {
						return errors.New("blocked: entity_not_found: no such topic")
					}
					return nil
				})
				a := w.start("a", handler, nil)
				w.put(1, 1)
				unwell := func() bool {
					l := w.leases()
					return len(l) == 1 && l[0].Health == changefeed.Retrying && strings.Contains(l[0].Error, "no such topic")
				}
				eventually(t, 10*time.Second, "the cause", unwell)
				failing := w.leases()[0].Failing
				a.crash()
				hang.Store(true)
				b := w.start("b", handler, nil)
				eventually(t, time.Minute, "the takeover", func() bool { return w.owners()["b"] == 1 })
				time.Sleep(time.Minute) // several reads find nothing new, and the handler has not answered
				if l := w.leases()[0]; !unwell() || !l.Failing.Equal(failing) {
					t.Errorf("after the takeover the lease says %q, %q since %s, want the cause since %s", l.Health, l.Error, l.Failing, failing)
				}
				hang.Store(false)
				away.Store(false)
				if !cure { // an operator moves the checkpoint past it
					if err := w.operator().Rewind(t.Context(), changefeed.FromNow()); err != nil {
						t.Fatal(err)
					}
				}
				b.stop()
				w.start("c", handler, nil)
				eventually(t, time.Minute, "health", func() bool { return w.owners()["c"] == 1 && w.leases()[0].Health == changefeed.Healthy })
			})
		})
	}
}

// Failures after the operator's request are reported as new ones, and the recovery once.
func TestOperatorRetryResetsFailureCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		h := &outage{got: newLedger()}
		h.down.Store(true)
		var mu sync.Mutex
		var reported []changefeed.RangeStuck
		recovered := 0
		w.put(1, 1)
		w.start("a", h, &changefeed.Options{RetryMax: 10 * time.Second, StuckAfter: time.Minute, Observer: &changefeed.Observer{
			RangeStuck: func(e changefeed.RangeStuck) {
				mu.Lock()
				defer mu.Unlock()
				reported = append(reported, e)
			},
			RangeRecovered: func(changefeed.RangeRecovered) {
				mu.Lock()
				defer mu.Unlock()
				recovered++
			},
		}})
		time.Sleep(10 * time.Minute)
		again := time.Now()
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		mu.Lock()
		if l := w.leases()[0]; len(reported) != 1 || l.Failing.Before(again) || l.Failures < 1 || l.Failures >= reported[0].Failures {
			t.Errorf("reported %+v; the lease has %d failures since %s, want a few since %s", reported, l.Failures, l.Failing, again)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
		mu.Lock()
		if len(reported) != 2 || reported[1].Since.Before(again) {
			t.Errorf("reported %+v, want a report of the failure that began at %s", reported, again)
		}
		mu.Unlock()
		h.down.Store(false)
		eventually(t, time.Minute, "handled", func() bool { return h.got.distinct() == 1 })
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if recovered != 1 {
			t.Errorf("%d recoveries reported, want one", recovered)
		}
	})
}

func TestProcessorWithoutObserverLogs(t *testing.T) {
	var out bytes.Buffer // slog's handler locks around each line; it is read when all has ended
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		p, err := changefeed.New(w.feed, w.store, changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error {
			return errors.New("blocked: no such topic")
		}), &changefeed.Options{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := p.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
	for _, want := range []string{"lease acquired", "delivery failed", "no such topic", "lease="} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "delivery failed"); n > 2 {
		t.Errorf("%d lines of one failure in a minute:\n%s", n, out.String())
	}
}

// The count of handled documents continues with the next owner.
func TestLeaseRecordsDeliveredBesideCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var first atomic.Pointer[string] // the key that waits
		handler := changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			key := string(item.Key)
			first.CompareAndSwap(nil, &key)
			if key == *first.Load() {
				return errors.New("not yet")
			}
			return nil
		})
		a := w.start("a", handler, &changefeed.Options{MaxItems: 1})
		w.put(1, 1)
		eventually(t, 10*time.Second, "the first key waits", func() bool { return first.Load() != nil })
		w.put(20, 10)
		time.Sleep(time.Minute)
		l := w.leases()[0]
		if l.LSN != 0 || l.Delivered < 15 || l.Handled < 15 || l.Handled > 20 {
			t.Errorf("checkpoint %d, delivered %d, %d handled; want nothing before the checkpoint, and most changes delivered", l.LSN, l.Delivered, l.Handled)
		}
		a.stop()
		handled := w.leases()[0].Handled
		w.start("b", nil, nil)
		eventually(t, time.Minute, "the rest", func() bool { l := w.leases()[0]; return l.LSN > 0 && l.LSN == l.Delivered && l.Handled > handled })
	})
}

// Failures before a pause do not count.
func TestRangeIsStuckAfterStuckAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var down atomic.Bool
		var stuck atomic.Int32
		down.Store(true)
		w.got.before = func(context.Context, *changefeed.Batch) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		w.put(1, 1)
		w.start("a", nil, &changefeed.Options{RetryMax: time.Second, Observer: &changefeed.Observer{
			RangeStuck: func(changefeed.RangeStuck) { stuck.Add(1) },
		}})
		time.Sleep(40 * time.Second)
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		down.Store(false)
		if err := w.operator().ResumeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 1 })
		down.Store(true)
		w.put(1, 1)
		time.Sleep(40 * time.Second)
		if stuck.Load() != 0 {
			t.Error("stuck after 40 seconds, want a minute")
		}
		time.Sleep(time.Minute)
		if stuck.Load() != 1 {
			t.Errorf("reported %d times, want once", stuck.Load())
		}
		down.Store(false)
		eventually(t, time.Minute, "handled", func() bool { return w.got.count() == 2 })
	})
}

// A recovery ends the report of a stuck range. The next one is reported again.
func TestEachTimeThatARangeIsStuckIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var down atomic.Bool
		var stuck atomic.Int32
		w.got.before = func(context.Context, *changefeed.Batch) error {
			if down.Load() {
				return errors.New("down")
			}
			return nil
		}
		w.start("a", nil, &changefeed.Options{RetryMax: time.Second, Observer: &changefeed.Observer{
			RangeStuck: func(changefeed.RangeStuck) { stuck.Add(1) },
		}})
		for n := range 3 {
			down.Store(true)
			w.put(1, 1)
			time.Sleep(5 * time.Minute)
			if stuck.Load() != int32(n+1) {
				t.Errorf("reported %d times after %d failures of 5 minutes", stuck.Load(), n+1)
			}
			down.Store(false)
			eventually(t, time.Minute, "handled", func() bool { return w.got.count() == n+1 })
		}
	})
}

// Until the next success or failure the lease has the cause, and is not marked as stopped.
func TestNewOwnerRetriesStoppedRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		a := w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error { return changefeed.Refuse(errNotNow) }),
			&changefeed.Options{MaxAttempts: 1, Poison: changefeed.PoisonStop})
		eventually(t, time.Minute, "stopped", func() bool { l := w.leases(); return len(l) == 1 && l[0].Health == changefeed.Stopped })
		a.stop()
		b := w.start("b", changefeed.HandlerFunc(func(ctx context.Context, _ *changefeed.Batch) error { <-ctx.Done(); return ctx.Err() }), nil)
		eventually(t, time.Minute, "taken", func() bool { return w.owners()["b"] == 1 })
		if l := w.leases()[0]; l.Health != changefeed.Retrying || !strings.Contains(l.Error, errNotNow.Error()) {
			t.Errorf("the lease has %q, %q", l.Health, l.Error)
		}
		b.end()
	})
}

func TestStuckIsCountedAcrossOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		fails := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errNotNow })
		w.put(1, 1)
		a := w.start("a", fails, nil)
		began := time.Now()
		time.Sleep(45 * time.Second)
		a.stop()
		var stuck atomic.Pointer[changefeed.RangeStuck]
		w.start("b", fails, &changefeed.Options{RetryMax: time.Second, Observer: &changefeed.Observer{
			RangeStuck: func(e changefeed.RangeStuck) { stuck.CompareAndSwap(nil, &e) },
		}})
		eventually(t, 30*time.Second, "stuck after a minute with both", func() bool { return stuck.Load() != nil })
		if since := stuck.Load().Since.Sub(began); since > time.Second {
			t.Errorf("stuck since %s after the first failure", since)
		}
	})
}

func TestFailureCountSurvivesTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		fail := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errNotNow })
		options := &changefeed.Options{RetryMax: time.Second}
		w.put(1, 1)
		a := w.start("a", fail, options)
		time.Sleep(5 * time.Minute)
		before := w.leases()[0].Failures
		a.crash()
		w.start("b", fail, options)
		eventually(t, time.Minute, "the takeover", func() bool { return w.owners()["b"] == 1 })
		time.Sleep(30 * time.Second)
		if after := w.leases()[0].Failures; before < 100 || after <= before {
			t.Errorf("%d failures with the first owner, %d later with the next one", before, after)
		}
	})
}
