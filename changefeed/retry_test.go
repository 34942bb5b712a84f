package changefeed_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

func TestFailedCallIsFollowedBySingleDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var calls atomic.Int32
		w.put(10, 1)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			switch calls.Add(1) {
			case 1:
				return errNotNow
			case 2:
				if len(b.Items) != 1 {
					t.Errorf("%d documents in the call after the failure, want 1", len(b.Items))
				}
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "handled", func() bool { return w.stored(10) })
	})
}

// A key is retried at its own time, however long others wait. Of several WaitUntil times
// for a key the latest counts.
func TestEachKeyIsRetriedWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		began := time.Now()
		var early, failed atomic.Int32
		w.feed.Put(memfeed.Document{Key: "k", ID: "long"}, memfeed.Document{Key: "k", ID: "short"})
		w.feed.Put(memfeed.Document{Key: "j", ID: "short-2"}, memfeed.Document{Key: "j", ID: "long-2"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				switch id := idOf(&b.Items[i]); {
				case strings.HasPrefix(id, "long") && time.Since(began) < time.Hour:
					b.Answer(i, changefeed.WaitUntil(began.Add(time.Hour), errNotNow))
				case strings.HasPrefix(id, "short") && time.Since(began) < time.Hour:
					early.Add(1)
					b.Answer(i, changefeed.WaitUntil(time.Now().Add(time.Minute), errNotNow))
				case id == "doc-1" && failed.Add(1) == 1:
					b.Answer(i, errNotNow)
				default:
					got.note(&b.Items[i])
					b.Answer(i, nil)
				}
			}
			return nil
		}), nil)
		time.Sleep(10 * time.Second)
		w.put(1, 1)
		eventually(t, 5*time.Second, "the other key is handled", func() bool { return got.distinct() == 1 })
		time.Sleep(65 * time.Minute)
		if early.Load() != 2 || got.distinct() != 5 {
			t.Errorf("%d tries before the time, %d handled", early.Load(), got.distinct())
		}
		got.once(t)
	})
}

// deadLetterWhileBusy starts a host that handles another document the whole time, so that
// no empty read reports success, and returns once a refused document was dead-lettered.
func deadLetterWhileBusy(t *testing.T, w *world, now func() time.Time) {
	t.Helper()
	var g deadLetters
	var refused atomic.Bool
	w.feed.Put(memfeed.Document{Key: "busy", ID: "busy"})
	w.start("a", changefeed.Each(func(ctx context.Context, item changefeed.Item) error {
		if idOf(&item) == "busy" {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return nil
		}
		refused.Store(true)
		return changefeed.Refuse(errNotNow)
	}), &changefeed.Options{DeadLetter: g.store, MaxAttempts: 1, RetryMin: 20 * time.Second, Lanes: 16, HandlerTimeout: 2 * time.Hour, Now: now})
	time.Sleep(10 * time.Second)
	for n := 0; !refused.Load(); n++ { // until the lane of one is not the busy one
		w.feed.Put(memfeed.Document{Key: fmt.Sprint("refused", n), ID: fmt.Sprint("refused", n)})
		time.Sleep(5 * time.Second)
	}
	if g.count() != 1 {
		t.Fatal("not dead-lettered at once")
	}
	time.Sleep(10 * time.Second)
}

// The range is healthy after that.
func TestExhaustedDocumentIsDeadLetteredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		deadLetterWhileBusy(t, w, nil)
		if l := w.leases()[0]; l.Health != changefeed.Healthy {
			t.Errorf("health %q", l.Health)
		}
	})
}

// The retry may be faster than the report of the failure.
func TestLateFailureReportDoesNotOutlastRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		deadLetterWhileBusy(t, w, func() time.Time {
			if caller, _, _, _ := runtime.Caller(1); strings.HasSuffix(runtime.FuncForPC(caller).Name(), "noteFailure") {
				time.Sleep(time.Second)
			}
			return time.Now()
		})
		if l := w.leases()[0]; l.Health != changefeed.Healthy {
			t.Errorf("health %q", l.Health)
		}
	})
}

func TestHandledRetryShowsThatHandlerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		failed := map[string]bool{}
		w.put(1, 1)
		w.traffic(10 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if id := idOf(&item); id == "doc-1" || !failed[id] {
				failed[id] = true
				return errNotNow
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		time.Sleep(5 * time.Minute)
		if g.count() != 1 || g.letters[0].ID != "doc-1" {
			t.Errorf("letters %+v, want one", g.letters)
		}
	})
}

func TestRetryKeepsTransactionsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int32
		for n := range 3 {
			w.feed.Put(memfeed.Document{Key: "k", ID: fmt.Sprint("a", n)}, memfeed.Document{Key: "k", ID: fmt.Sprint("b", n)}, memfeed.Document{Key: "k", ID: fmt.Sprint("c", n)})
		}
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			if len(b.Items)%3 != 0 {
				t.Errorf("%d documents, part of a transaction of three", len(b.Items))
			}
			if tries.Add(1) < 4 {
				return errNotNow
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "handled", func() bool { return w.stored(3) })
	})
}

func TestRetryIsAtMostOnePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		began := time.Now()
		var most atomic.Int64
		w.put(60, 60)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			if b.Attempt > 1 {
				most.Store(max(most.Load(), int64(len(b.Items))))
			}
			for i := range b.Items {
				if until := began.Add(10 * time.Second); time.Now().Before(until) {
					b.Answer(i, changefeed.WaitUntil(until, errNotNow))
					continue
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			return nil
		}), &changefeed.Options{MaxItems: 5, ReadAheadItems: 100})
		eventually(t, 5*time.Minute, "handled", func() bool { return got.distinct() == 60 })
		if most.Load() != 5 {
			t.Errorf("a retry had %d documents, want 5", most.Load())
		}
	})
}

// The next document starts with short pauses and at its first attempt.
func TestNextDocumentOfKeyStartsWithFreshBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		began := time.Now()
		var failed, again time.Time
		var attempt int
		w.feed.Put(memfeed.Document{Key: "k", ID: "doc-1"})
		w.feed.Put(memfeed.Document{Key: "k", ID: "doc-2"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				switch id := idOf(&b.Items[i]); {
				case id == "doc-1" && time.Since(began) < 5*time.Minute:
					b.Answer(i, errNotNow)
					return nil
				case id == "doc-2" && failed.IsZero():
					failed = time.Now()
					b.Answer(i, errNotNow)
				case id == "doc-2":
					again, attempt = time.Now(), b.Attempt
					b.Answer(i, nil)
				default:
					b.Answer(i, nil)
				}
			}
			return nil
		}), nil)
		eventually(t, 10*time.Minute, "handled", func() bool { return w.stored(2) })
		if d := again.Sub(failed); d > time.Second || attempt != 2 {
			t.Errorf("tried again after %s as attempt %d, want a short pause and attempt 2", d, attempt)
		}
	})
}

// Held documents are retried at once, not at the end of their pause.
func TestFirstDeliveryThatSucceedsEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		h := &outage{got: got}
		h.down.Store(true)
		w.put(8, 8)
		w.start("a", h, &changefeed.Options{RetryMax: time.Hour, PollMax: 5 * time.Second})
		time.Sleep(4 * time.Hour)
		before := h.calls.Load()
		eventually(t, 2*time.Hour, "tried once more", func() bool { return h.calls.Load() > before })
		h.down.Store(false)
		w.put(1, 1)
		w.feed.Put(memfeed.Document{Key: "other", ID: "other"})
		eventually(t, time.Minute, "handled", func() bool { return got.of("other") == 1 })
		time.Sleep(time.Minute)
		if n := got.distinct(); n != 10 {
			t.Errorf("%d of 10 handled a minute after one had passed", n)
		}
	})
}

// Keys that are retried together may have failed a different number of times.
func TestAttemptOfABatchIsTheHighestOfItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		due := time.Now().Add(time.Hour)
		var failures, attempt atomic.Int32
		w.feed.Put(memfeed.Document{Key: "a", ID: "first"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				switch {
				case !time.Now().Before(due):
					if attempt.CompareAndSwap(0, int32(b.Attempt)) && len(b.Items) != 2 { //nolint:gosec // small
						t.Errorf("%d documents in the batch, want those of both keys", len(b.Items))
					}
					b.Answer(i, nil)
				case failures.Add(1) < 4:
					b.Answer(i, errNotNow)
				default:
					b.Answer(i, changefeed.WaitUntil(due, errNotNow))
				}
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "failed four times", func() bool { return failures.Load() == 4 })
		w.feed.Put(memfeed.Document{Key: "b", ID: "second"})
		eventually(t, 2*time.Hour, "handled", func() bool { return w.stored(2) })
		if n := attempt.Load(); n != 5 {
			t.Errorf("the batch is attempt %d, want 5", n)
		}
	})
}

// The pause after a call that failed as a whole is as long as a throttled handler asks, also for keys that are due.
func TestThrottledCallRestsAsLongAsItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var throttled atomic.Pointer[time.Time]
		var early atomic.Int32
		w.feed.Put(memfeed.Document{Key: "k", ID: "fails"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			since := throttled.Load()
			switch {
			case since == nil && idOf(&b.Items[0]) == "throttled":
				now := time.Now()
				throttled.Store(&now)
				return &changefeed.ThrottledError{RetryAfter: time.Minute, Err: errNotNow}
			case since == nil:
				return errNotNow
			case time.Since(*since) > 0 && time.Since(*since) < time.Minute:
				early.Add(1)
			}
			return nil
		}), &changefeed.Options{RetryMax: 2 * time.Second})
		time.Sleep(20 * time.Second)
		w.feed.Put(memfeed.Document{Key: "j", ID: "throttled"})
		eventually(t, 5*time.Minute, "handled", func() bool { return w.stored(2) })
		if n := early.Load(); n > 0 {
			t.Errorf("%d calls within the minute that the handler asked for", n)
		}
	})
}

// When the document before it is done, it is at its first attempt.
func TestLaterDocumentOfHeldKeyIsTriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var done, next time.Time
		var attempt int
		began := time.Now()
		w.feed.Put(memfeed.Document{Key: "k", ID: "doc-1"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			switch {
			case time.Since(began) < time.Minute:
				return errNotNow // so that one is tried alone
			case done.IsZero():
				done = time.Now()
			default:
				next, attempt = time.Now(), b.Attempt
			}
			return nil
		}), &changefeed.Options{RetryMin: 10 * time.Second})
		time.Sleep(30 * time.Second)
		w.feed.Put(memfeed.Document{Key: "k", ID: "doc-2"})
		eventually(t, 5*time.Minute, "handled", func() bool { return w.stored(2) })
		if wait := next.Sub(done); wait != 0 || attempt != 1 {
			t.Errorf("tried after %s as attempt %d, want at once as attempt 1", wait, attempt)
		}
	})
}

func TestFailingDeadLetterIsReportedAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var calls atomic.Int64
		w.put(1, 1)
		w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error { return changefeed.Refuse(errNotNow) }),
			&changefeed.Options{MaxAttempts: 1, DeadLetter: func(context.Context, changefeed.DeadLetter) error {
				calls.Add(1)
				return errCut
			}})
		time.Sleep(10 * time.Minute)
		if l := w.leases()[0]; l.Health != changefeed.Retrying || l.Error != "dead letter: "+errCut.Error() || int64(l.Failures) < calls.Load() {
			t.Errorf("health %q, %d failures, %q; want the sink's error", l.Health, l.Failures, l.Error)
		}
		if n := calls.Load(); n < 20 || n > 40 {
			t.Errorf("%d letters in 10 minutes, want the first ones quickly and then one each 30 s", n)
		}
	})
}

// If the service bounds the page, a retry has at most 100 documents.
func TestRetryIsBoundedWithoutMaxItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		began := time.Now()
		most := 0
		w.put(150, 150)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			if b.Attempt > 1 {
				most = max(most, len(b.Items))
			}
			for i := range b.Items {
				if until := began.Add(10 * time.Second); time.Now().Before(until) {
					b.Answer(i, changefeed.WaitUntil(until, errNotNow))
					continue
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			return nil
		}), &changefeed.Options{MaxItems: -1})
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 150 })
		if got.once(t); most != 100 {
			t.Errorf("a retry had %d documents, want 100", most)
		}
	})
}

// The failure is reported however long the pause before the next attempt is.
func TestFirstFailureIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error { return errNotNow }),
			&changefeed.Options{RetryMin: time.Hour, RetryMax: time.Hour})
		time.Sleep(10 * time.Second)
		if l := w.leases()[0]; l.Health != changefeed.Retrying || l.Error != errNotNow.Error() || l.Failures != 1 {
			t.Errorf("health %q, %d failures, %q; want the one failure", l.Health, l.Failures, l.Error)
		}
	})
}

// The attempts of a document are not those of the one before it in its key.
func TestAttemptsBeginAgainWithTheNextDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(2, 1)
		var mu sync.Mutex
		first, second := 0, []int(nil)
		handler := changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			for i := range b.Items {
				if idOf(&b.Items[i]) == "doc-1" {
					if first++; first <= 5 {
						b.Answer(i, errNotNow)
						return nil
					}
					b.Answer(i, nil)
					continue
				}
				if i == 0 { // without the first one
					second = append(second, b.Attempt)
				}
				b.Answer(i, errNotNow)
			}
			return nil
		})
		h := w.start("a", handler, &changefeed.Options{RetryMax: time.Second})
		tried := func() []int { mu.Lock(); defer mu.Unlock(); return slices.Clone(second) }
		eventually(t, time.Minute, "the second document is tried", func() bool { return len(tried()) >= 3 })
		if n := tried(); n[0] > 2 || n[1] != n[0]+1 || n[2] != n[0]+2 {
			t.Errorf("attempts %v of the second document, want them to begin with 1 or 2", n)
		}
		h.end()
	})
}
