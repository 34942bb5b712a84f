package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/testenv"
)

// stuckKeys is a handler for which documents whose id starts with "stuck" wait, and which
// counts how often the other ones are handled.
type stuckKeys struct {
	*ledger
	freed atomic.Bool // handle them
}

func newStuckKeys() *stuckKeys { return &stuckKeys{ledger: newLedger()} }

func (h *stuckKeys) Handle(ctx context.Context, b *changefeed.Batch) error {
	return changefeed.Each(func(_ context.Context, item changefeed.Item) error {
		if strings.HasPrefix(idOf(&item), "stuck") && !h.freed.Load() {
			return errNotNow
		}
		h.note(&item)
		return nil
	}).Handle(ctx, b)
}

// options returns options with little memory, so that bounds are reached soon.
func (h *stuckKeys) options() *changefeed.Options {
	return &changefeed.Options{MaxItems: 10, ReadAheadItems: 32, Lanes: 4, RetryMax: time.Second}
}

// again returns how many documents were handled more than once.
func (h *stuckKeys) again() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	times := map[string]int{}
	for _, id := range h.order {
		if times[id]++; times[id] == 2 {
			n++
		}
	}
	return n
}

// blocked returns a world with a stuck document, after which n documents of other keys were
// handled by host a.
func blocked(t *testing.T, n int) (*world, *stuckKeys, *host) {
	t.Helper()
	w, h := newWorld(t, 1), newStuckKeys()
	w.feed.Put(memfeed.Document{Key: "stuck", ID: "stuck"})
	w.put(n, 50)
	a := w.start("a", h, h.options())
	eventually(t, 10*time.Minute, "the other keys are handled", func() bool { return h.distinct() == n })
	return w, h, a
}

// The bound of documents handled ahead of the checkpoint is 3,200 here.
func TestHeldKeyStopsNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h, a := blocked(t, 10_000)
		a.stop()
		b := w.start("b", h, h.options())
		w.put(500, 50)
		eventually(t, time.Minute, "the next documents are handled", func() bool { return h.distinct() == 10_500 })
		if n := h.again(); n > 0 {
			t.Errorf("%d documents were handled again after a graceful restart", n)
		}
		h.freed.Store(true)
		eventually(t, time.Minute, "the held document is handled", func() bool { return h.of("stuck") == 1 })
		b.stop()
		if l := w.leases()[0]; l.Continuation != `"10501"` || l.Ahead.LSN != 0 || len(l.Ahead.Held) > 0 {
			t.Errorf("lease %+v, want nothing ahead of the checkpoint", l)
		}
		h.once(t)
	})
}

func TestCrashRepeatsWhatWasHandledSinceTheLastWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h, a := blocked(t, 2000)
		w.traffic(10 * time.Millisecond)
		time.Sleep(time.Minute)
		a.crash()
		before := h.distinct()
		w.start("b", h, h.options())
		eventually(t, 2*time.Minute, "the next documents are handled", func() bool { return h.distinct() > before+1000 })
		if n := h.again(); n > 165 { // 100 within CheckpointEvery, and those of a poll, which may be 0.6 s later
			t.Errorf("%d documents were handled again after a crash, want those of a second", n)
		}
	})
}

func TestHandOffRepeatsNothingThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h, a := blocked(t, 2000)
		w.start("b", h, h.options())
		for _, from := range []*host{a} {
			time.Sleep(time.Minute)
			from.stop()
		}
		w.put(100, 50)
		eventually(t, time.Minute, "the next documents are handled", func() bool { return h.distinct() == 2100 })
		if w.owners()["b"] != 1 || h.again() > 0 {
			t.Errorf("owners %v; %d documents were handled again", w.owners(), h.again())
		}
	})
}

// What was written before the start may have expired after it was sent, also for the next owner.
func TestHandOffInTheBacklogIsNotResumed(t *testing.T) {
	for _, rewound := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var resumed, not atomic.Int32
			w.got.before = func(_ context.Context, b *changefeed.Batch) error {
				time.Sleep(time.Second)
				if b.Resumed {
					resumed.Add(1)
				} else {
					not.Add(1)
				}
				return nil
			}
			options := &changefeed.Options{MaxItems: 10, ReadAheadItems: 10}
			all := 100
			w.put(100, 1)
			h := w.start("a", nil, options)
			if rewound {
				eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == all })
				time.Sleep(time.Minute)
				if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
					t.Fatal(err)
				}
				all += 100
			}
			for _, next := range []string{"b", "c"} {
				before := w.got.count()
				eventually(t, time.Minute, "some are delivered", func() bool { return w.got.count() >= before+20 })
				h.stop()
				h = w.start(next, nil, options)
			}
			eventually(t, time.Minute, "all are delivered", func() bool { return w.got.count() == all })
			if n := resumed.Load(); n > 0 {
				t.Errorf("rewound %t: %d batches of the backlog are resumed", rewound, n)
			}
			time.Sleep(time.Minute)
			h.stop()
			not.Store(0)
			w.put(1, 1)
			w.start("d", nil, options)
			eventually(t, time.Minute, "the next one is delivered", func() bool { return w.got.count() == all+1 })
			if not.Load() > 0 || resumed.Load() != 1 {
				t.Errorf("rewound %t: %d batches after the backlog are not resumed, %d are", rewound, not.Load(), resumed.Load())
			}
		})
	}
}

// A range that is never idle, or has a key that waits, was read to its end all the same. What is missing after that is
// lost.
func TestBacklogEndsInARangeThatIsNeverIdle(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var resumed, not atomic.Int32
			w.got.before = func(_ context.Context, b *changefeed.Batch) error {
				time.Sleep(300 * time.Millisecond)
				for i := range b.Items {
					b.Answer(i, nil) // what is not answered waits, too
					switch {
					case waiting && strings.Contains(string(b.Items[i].Raw), "\"doc-1\""):
						b.Answer(i, changefeed.WaitUntil(time.Time{}, errCut))
					case b.Attempt == 1 && b.Resumed:
						resumed.Add(1)
					case b.Attempt == 1:
						not.Add(1)
					}
				}
				return nil
			}
			w.put(10, 10)
			w.start("a", nil, nil)
			eventually(t, time.Minute, "the backlog is handled", func() bool { return not.Load() >= 9 })
			for n := range 300 {
				if n == 150 {
					resumed.Store(0)
					not.Store(0)
				}
				w.feed.Put(memfeed.Document{Key: "key-1", ID: fmt.Sprintf("doc-%d", w.docs.Add(1))})
				time.Sleep(100 * time.Millisecond)
			}
			if resumed.Load() == 0 || not.Load() > 0 {
				t.Errorf("waiting %t: %d documents are resumed, %d are not", waiting, resumed.Load(), not.Load())
			}
			time.Sleep(10 * time.Second)
			if l := w.leases()[0]; l.Backlog != waiting { // the checkpoint is before the key that waits
				t.Errorf("waiting %t: backlog %t in the lease", waiting, l.Backlog)
			}
		})
	}
}

func TestSplitRepeatsNothingThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h, _ := blocked(t, 2000)
		if !w.feed.Split(memfeed.EPK("stuck")) {
			t.Fatal("not split")
		}
		w.put(100, 50)
		eventually(t, time.Minute, "the next documents are handled", func() bool { return h.distinct() == 2100 && len(w.leases()) == 2 })
		w.put(100, 50)
		eventually(t, time.Minute, "the last documents are handled", func() bool { return h.distinct() == 2200 })
		time.Sleep(time.Minute)
		if n := h.again(); n > 0 {
			t.Errorf("%d documents were handled again after a split", n)
		}
		held := 0
		for _, l := range w.leases() {
			held += len(l.Ahead.Held)
		}
		if held != 1 {
			t.Errorf("%d held keys in both leases, want one", held)
		}
		h.freed.Store(true)
		eventually(t, time.Minute, "the held document is handled", func() bool { return h.of("stuck") == 1 })
	})
}

func TestRewindRepeatsWhatWasAhead(t *testing.T) {
	for _, owned := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, h, a := blocked(t, 1000)
			if !owned {
				a.stop()
			}
			if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
				t.Fatal(err)
			}
			if !owned {
				w.start("b", h, h.options())
			}
			eventually(t, time.Minute, "all other documents are handled again", func() bool { return h.again() == 1000 })
		})
	}
}

// A held key whose documents do not fit its share of the memory is read again once its first
// ones are done. Documents of other keys are not.
func TestHeldKeyBeyondItsMemoryIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(t, 1), newStuckKeys()
		a := w.start("a", h, h.options())
		for n := range 1000 {
			w.feed.Put(memfeed.Document{Key: "stuck", ID: fmt.Sprintf("stuck-%03d", n)})
			w.put(1, 50)
		}
		eventually(t, 10*time.Minute, "the other keys are handled", func() bool { return h.distinct() == 1000 })
		time.Sleep(time.Minute)
		h.freed.Store(true)
		eventually(t, time.Minute, "the held key is handled", func() bool { return h.distinct() == 2000 })
		h.once(t)
		h.mu.Lock()
		last := ""
		for _, id := range h.order {
			if strings.HasPrefix(id, "stuck") {
				if id < last {
					t.Errorf("%s was handled after %s", id, last)
				}
				last = id
			}
		}
		h.mu.Unlock()
		a.stop()
		if l := w.leases()[0]; l.Continuation != `"2000"` || l.Ahead.LSN != 0 || len(l.Ahead.Held) > 0 {
			t.Errorf("lease %+v, want nothing ahead of the checkpoint", l)
		}
	})
}

// Each of them must reach MaxAttempts, and the record of the lease must not grow without a
// bound.
func TestRefusalsOfManyKeysAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		tried, letters, other := map[string]int{}, map[string]bool{}, 0
		var open atomic.Bool
		keys := testenv.Sample(t, 3000, 10_000)
		w.put(keys, keys)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			mu.Lock()
			defer mu.Unlock()
			if id := idOf(&item); strings.HasPrefix(id, "doc-") {
				tried[id]++
				return changefeed.Refuse(errNotNow)
			}
			other++
			return nil
		}), &changefeed.Options{ReadAheadItems: 2 * keys, MaxItems: 1000, Lanes: 8, RetryMax: 10 * time.Second, DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
			if !open.Load() {
				return errNotNow
			}
			mu.Lock()
			defer mu.Unlock()
			letters[l.ID] = l.Attempts == 5
			return nil
		}})
		eventually(t, time.Hour, "each is tried", func() bool { mu.Lock(); defer mu.Unlock(); return len(tried) == keys })
		time.Sleep(5 * time.Minute)
		w.traffic(time.Second)
		eventually(t, time.Minute, "other keys are handled", func() bool { mu.Lock(); defer mu.Unlock(); return other > 10 })
		records, err := w.store.List(t.Context(), "changefeed")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if len(r.Body) > 100<<10 {
				t.Errorf("record %s has %d bytes", r.ID, len(r.Body))
			}
		}
		open.Store(true)
		eventually(t, time.Hour, "all are dead-lettered", func() bool { mu.Lock(); defer mu.Unlock(); return len(letters) == keys })
		mu.Lock()
		defer mu.Unlock()
		for id, n := range tried {
			if n != 5 || !letters[id] {
				t.Fatalf("%s was refused %d times, want 5; its letter is correct: %t", id, n, letters[id])
			}
		}
	})
}

// The feed ends with that change. The record must not go back before the next owner has handled it.
func TestRefusalsStayWhileTheLastChangeOfFormerWorkIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var again, handling atomic.Bool
		for lsn := range 3 { // the second one is done, so the record is ahead of the checkpoint
			w.feed.Put(memfeed.Document{Key: fmt.Sprint("key-", lsn+1), ID: fmt.Sprint(lsn + 1)})
		}
		h := changefeed.Each(func(ctx context.Context, item changefeed.Item) error {
			switch {
			case item.LSN == 2:
				return nil
			case item.LSN == 3 && again.Load():
				handling.Store(true)
				<-ctx.Done()
				return ctx.Err()
			}
			return changefeed.Refuse(errNotNow)
		})
		o := &changefeed.Options{MaxItems: 1, MaxAttempts: -1}
		held := func() map[int64]int {
			refusals := map[int64]int{}
			for _, k := range w.leases()[0].Ahead.Held {
				refusals[k.LSN] = k.Refusals
			}
			return refusals
		}
		a := w.start("a", h, o)
		eventually(t, time.Minute, "refused", func() bool { return len(w.leases()) == 1 && held()[1] > 0 && held()[3] > 0 })
		a.stop()
		again.Store(true)
		w.start("b", h, o)
		eventually(t, time.Minute, "the last change is with the handler", handling.Load)
		time.Sleep(time.Minute)
		if l := w.leases()[0]; l.Ahead.LSN != 3 || held()[3] == 0 {
			t.Errorf("the record has %+v, want all that was done up to LSN 3 and the refusals of that change", l.Ahead)
		}
	})
}

// A time that has passed is an unknown time.
func TestWaitUntilUnknownTimeIsNotCounted(t *testing.T) {
	for name, until := range map[string]time.Time{"zero": {}, "past": time.Unix(1, 0)} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var g deadLetters
			var tries atomic.Int64
			w.put(1, 1)
			w.traffic(time.Second)
			w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
				if idOf(&item) == "doc-1" {
					tries.Add(1)
					return changefeed.WaitUntil(until, errNotNow)
				}
				return nil
			}), &changefeed.Options{DeadLetter: g.store, WaitLimit: time.Minute})
			time.Sleep(time.Hour)
			if g.count() != 0 || tries.Load() < 100 || tries.Load() > 200 {
				t.Errorf("%s: %d letters; tried %d times in an hour, want about every RetryMax", name, g.count(), tries.Load())
			}
		})
	}
}

// The memory of a page is used again once its last document is held.
func TestHeldDocumentKeepsItsIDAfterItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call > 1 {
				return &changefeed.Page{CaughtUp: true, EndLSN: 1}, nil
			}
			page := change(1, "k")
			raw := page.Items[0].Raw
			page.Release = func() { clear(raw) }
			return page, nil
		}}
		var letters []changefeed.DeadLetter
		stop := w.run(feed, changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			b.Answer(0, changefeed.Refuse(errors.New("no")))
			return nil
		}), &changefeed.Options{MaxAttempts: 1, DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
			letters = append(letters, l)
			return nil
		}})
		time.Sleep(time.Minute)
		if stop(); len(letters) != 1 || letters[0].ID == "" || letters[0].ID[0] == 0 {
			t.Errorf("dead letters %+v, want one with the id of its document", letters)
		}
	})
}

// A range is handed off while a handler works beside a held key. The changes that it finishes then are not
// delivered again.
func TestWorkFinishedDuringAHandOffIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(t, 1), newStuckKeys()
		var working atomic.Bool
		slow := changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			if !strings.HasPrefix(idOf(&b.Items[0]), "stuck") {
				working.Store(true)
				time.Sleep(5 * time.Second)
			}
			return h.Handle(ctx, b)
		})
		w.feed.Put(memfeed.Document{Key: "stuck", ID: "stuck"})
		a := w.start("a", slow, h.options())
		eventually(t, time.Minute, "a held key", func() bool { l := w.leases(); return len(l) == 1 && l[0].Health == changefeed.Retrying })
		w.put(8, 8)
		eventually(t, time.Minute, "a handler that works", working.Load)
		a.stop()
		w.start("b", h, h.options())
		w.put(8, 8)
		eventually(t, time.Minute, "the other documents are handled", func() bool { return h.distinct() == 16 })
		if n := h.again(); n > 0 {
			t.Errorf("%d documents were handled again", n)
		}
	})
}
