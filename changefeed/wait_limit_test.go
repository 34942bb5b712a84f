package changefeed_test

import (
	"context"
	"errors"
	"fmt"
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

// The document is neither retried earlier nor dead-lettered for that time.
func TestWaitUntilDelaysRetryAndIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g deadLetters
		var tries []time.Time
		var mu sync.Mutex
		w.put(1, 1)
		w.traffic(10 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if idOf(&item) == "doc-1" {
				mu.Lock()
				defer mu.Unlock()
				if tries = append(tries, time.Now()); len(tries) < 7 {
					return changefeed.WaitUntil(time.Now().Add(10*time.Minute), errNotNow)
				}
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		time.Sleep(65 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(tries) != 7 || g.count() != 0 {
			t.Errorf("%d tries in an hour, want one each 10 minutes; %d letters", len(tries), g.count())
		}
		for i := 1; i < len(tries); i++ {
			if d := tries[i].Sub(tries[i-1]); d < 10*time.Minute || d > 11*time.Minute {
				t.Errorf("tried again after %s, want 10 minutes", d)
			}
		}
	})
}

// An outage says nothing about how soon a document can be retried after it.
func TestWaitUntilDoesNotLengthenTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var tries atomic.Int32
		var failed, again time.Time
		w.put(1, 1)
		w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			switch n := tries.Add(1); {
			case n <= 20:
				return changefeed.WaitUntil(time.Now().Add(time.Minute), errNotNow)
			case n == 21:
				failed = time.Now()
				return errNotNow
			}
			again = time.Now()
			return nil
		}), nil)
		eventually(t, time.Hour, "handled", func() bool { return w.stored(1) })
		if d := again.Sub(failed); d > 200*time.Millisecond {
			t.Errorf("retried %s after a failure, want the first pause", d)
		}
	})
}

// WaitUntil takes a time of Options.Now, not of Options.Clock.
func TestWaitUntilUsesTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(1, 1)
		wall := func() time.Time { return time.Now().Add(time.Hour) }
		tries := make(chan time.Time, 10)
		w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			tries <- time.Now()
			if len(tries) == 1 {
				return changefeed.WaitUntil(wall().Add(10*time.Second), errNotNow)
			}
			return nil
		}), &changefeed.Options{Now: wall})
		time.Sleep(time.Minute)
		first, again := <-tries, <-tries
		if d := again.Sub(first); d < 10*time.Second || d > 11*time.Second {
			t.Errorf("tried again after %s, want 10 seconds", d)
		}
	})
}

// Of several documents of a key, the tried one is dead-lettered, not one that waits for it.
func TestOnlyTriedDocumentIsDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g deadLetters
		w.feed.Put(memfeed.Document{Key: "k", ID: "second"}, memfeed.Document{Key: "k", ID: "first"})
		w.traffic(10 * time.Second)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			first := slices.IndexFunc(b.Items, func(i changefeed.Item) bool { return idOf(&i) == "first" })
			for i := range b.Items {
				switch {
				case i == first:
					b.Answer(i, errNotNow)
				case first >= 0 && idOf(&b.Items[i]) == "second": // held after the other
				default:
					got.note(&b.Items[i])
					b.Answer(i, nil)
				}
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		time.Sleep(5 * time.Minute)
		if g.count() != 1 || g.letters[0].ID != "first" || !g.letters[0].Waiting || !errors.Is(g.letters[0].Err, errNotNow) {
			t.Errorf("letters %+v, want one for the document that was tried", g.letters)
		}
		if got.of("second") != 1 {
			t.Errorf("the other document was handled %d times", got.of("second"))
		}
	})
}

func TestFullWindowRetriesBeforeDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g deadLetters
		failed := map[string]bool{}
		w.put(10, 10)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if id := idOf(&item); item.LSN > 6 && !failed[id] {
				failed[id] = true
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Hour, MaxItems: 10, ReadAheadItems: 2})
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 10 || g.count() > 0 })
		if g.count() != 0 {
			t.Errorf("%d documents were dead-lettered after one failure", g.count())
		}
		got.once(t)
	})
}

// A refused document has its attempts, even if they take longer than WaitLimit.
func TestRefusalsAreNotLimitedByWaitLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		w.put(4, 4)
		w.traffic(20 * time.Millisecond)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if idOf(&item) == "doc-2" {
				return changefeed.Refuse(errNotNow)
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Millisecond})
		eventually(t, time.Minute, "kept", func() bool { return g.count() == 1 })
		if l := g.letters[0]; l.Waiting || l.Attempts != 5 {
			t.Errorf("letter after %d attempts, waiting %t; want 5, refused", l.Attempts, l.Waiting)
		}
	})
}

// A document that waited too long, was retried because the sink failed, and was then
// refused, is dead-lettered as refused.
func TestDeadLetterHasTheLastOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		g.fail.Store(1)
		w.put(1, 1)
		w.traffic(5 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			switch {
			case idOf(&item) != "doc-1":
				return nil
			case g.fail.Load() > 0:
				return errNotNow
			}
			return changefeed.Refuse(errNotNow)
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		eventually(t, 10*time.Minute, "kept", func() bool { return g.count() == 1 })
		if l := g.letters[0]; l.Waiting || l.Attempts != 5 {
			t.Errorf("letter after %d attempts, waiting %t; want 5, refused", l.Attempts, l.Waiting)
		}
	})
}

// WaitLimit counts from when a document became the first of its key.
func TestWaitLimitCountsPerDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g deadLetters
		var mu sync.Mutex
		began := map[string]time.Time{} // guarded by mu
		waits := func(id string) bool {
			mu.Lock()
			defer mu.Unlock()
			if began[id].IsZero() {
				began[id] = time.Now()
			}
			return id == "never" || time.Since(began[id]) < 45*time.Second
		}
		for _, id := range []string{"a", "b"} {
			w.feed.Put(memfeed.Document{Key: "first", ID: id})
		}
		for _, id := range []string{"never", "c"} {
			w.feed.Put(memfeed.Document{Key: "second", ID: id})
		}
		w.traffic(2 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			switch id := idOf(&item); id {
			case "a", "b", "c", "never":
				if waits(id) {
					return errNotNow
				}
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute, RetryMax: 3 * time.Second})
		time.Sleep(5 * time.Minute)
		if g.count() != 1 || g.letters[0].ID != "never" || got.of("a") != 1 || got.of("b") != 1 || got.of("c") != 1 {
			t.Errorf("handled %d, %d and %d times; letters %+v", got.of("a"), got.of("b"), got.of("c"), g.letters)
		}
	})
}

func TestDeadLetterOfWaitingDocumentHasAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		var tries atomic.Int64
		w.put(1, 1)
		w.traffic(10 * time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if idOf(&item) == "doc-1" {
				tries.Add(1)
				return errNotNow
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		eventually(t, 5*time.Minute, "dead-lettered", func() bool { return g.count() == 1 })
		if l := g.letters[0]; int64(l.Attempts) != tries.Load() || l.Attempts < 3 {
			t.Errorf("the letter has %d attempts, it was tried %d times", l.Attempts, tries.Load())
		}
	})
}

func TestPartlyHandledBatchShowsThatHandlerWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		w.put(1, 1)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if strings.HasPrefix(idOf(&item), "good-") {
				return nil
			}
			return errNotNow
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
		for n := range 30 {
			time.Sleep(10 * time.Second)
			w.feed.Put(memfeed.Document{Key: "good", ID: fmt.Sprint("good-", n)}, memfeed.Document{Key: fmt.Sprint("bad-", n), ID: fmt.Sprint("bad-", n)})
		}
		if !g.holds("doc-1") {
			t.Errorf("%d documents were dead-lettered in 5 minutes, doc-1 is not among them", g.count())
		}
	})
}

// The handler may succeed by then.
func TestWaitingDocumentIsRetriedAfterFailedDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var letters atomic.Int32
		var open atomic.Bool
		w.put(1, 1)
		w.traffic(time.Second)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if idOf(&item) == "doc-1" && !open.Load() {
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{WaitLimit: time.Minute, DeadLetter: func(context.Context, changefeed.DeadLetter) error {
			letters.Add(1)
			open.Store(true) // the wait is over
			return errors.New("the sink is full")
		}})
		eventually(t, 10*time.Minute, "a letter", func() bool { return letters.Load() > 0 })
		time.Sleep(10 * time.Minute)
		if n := got.of("doc-1"); n != 1 || letters.Load() != 1 {
			t.Errorf("handled %d times, %d letters, want it handled once after one letter", n, letters.Load())
		}
	})
}
