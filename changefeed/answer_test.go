package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

var errNotNow = errors.New("not now")

// ledger counts what was handled, by document id.
type ledger struct {
	mu    sync.Mutex
	times map[string]int
	order []string
}

func newLedger() *ledger { return &ledger{times: map[string]int{}} }

func (l *ledger) note(item *changefeed.Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, rest, _ := strings.Cut(string(item.Raw), `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	l.times[id]++
	l.order = append(l.order, id)
}

// of is how often a document was handled.
func (l *ledger) of(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times[id]
}

func (l *ledger) distinct() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.times)
}

// once fails if a document was handled more than once.
func (l *ledger) once(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.times {
		if n != 1 {
			t.Errorf("%s was handled %d times", id, n)
		}
	}
}

// A handler that stops at the first bad document and names it has said nothing of
// those behind it: they are handed over again.
func TestWhatIsNotAnsweredForIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g graves
		w.put(40, 40)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				if hasID("doc-7")(string(b.Items[i].Raw)) {
					b.Answer(i, changefeed.Refuse(errors.New("cannot handle this")))
					return nil
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.bury})
		eventually(t, time.Minute, "all others are handled", func() bool { return got.distinct() == 39 })
		eventually(t, time.Minute, "the bad one is kept", func() bool { return g.count() == 1 })
		got.once(t)
	})
}

// One key waits for an hour: every other document is handled without delay, none
// twice, the checkpoint stays before the one that waits, and it is handled, in
// order, when it can be.
func TestAKeyThatWaitsHoldsNobodyElse(t *testing.T) {
	for name, fail := range map[string]func(b *changefeed.Batch, i int) error{
		"answers": func(b *changefeed.Batch, i int) error { b.Answer(i, errNotNow); return nil },
		"answers with time": func(b *changefeed.Batch, i int) error {
			b.Answer(i, changefeed.WaitUntil(time.Now().Add(3*time.Second), errNotNow))
			return nil
		},
		"fails": func(*changefeed.Batch, int) error { return errNotNow },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				got := newLedger()
				var open atomic.Bool
				w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
					blocked := false
					for i := range b.Items {
						if string(b.Items[i].Key) == `"key-3"` && !open.Load() {
							if err := fail(b, i); err != nil {
								return err
							}
							blocked = true
						}
					}
					for i := range b.Items {
						if string(b.Items[i].Key) == `"key-3"` && blocked {
							continue
						}
						got.note(&b.Items[i])
						b.Answer(i, nil)
					}
					return nil
				}), &changefeed.Options{Lanes: 4, MaxItems: 20})
				for round := 1; round <= 60; round++ {
					w.put(50, 10)
					time.Sleep(time.Minute)
					if n := got.distinct(); n != round*45 {
						t.Fatalf("minute %d: %d documents handled, want %d", round, n, round*45)
					}
				}
				if l := w.leases()[0]; checkpointLSN(t, l.Continuation) >= 4 || l.Health != changefeed.Retrying || !strings.Contains(l.Error, "not now") {
					t.Errorf("lease while a key waits: continuation %s, health %q, error %q", l.Continuation, l.Health, l.Error)
				}
				open.Store(true)
				eventually(t, time.Minute, "all handled", func() bool { return got.distinct() == 3000 })
				got.once(t)
				var waited []string
				for _, id := range got.order {
					if strings.HasSuffix(id, "4") { // documents of key-3: doc-4, doc-14, ...
						waited = append(waited, id)
					}
				}
				want := slices.Clone(waited)
				slices.SortFunc(want, func(a, b string) int {
					x, _ := strconv.Atoi(strings.TrimPrefix(a, "doc-"))
					y, _ := strconv.Atoi(strings.TrimPrefix(b, "doc-"))
					return x - y
				})
				if !slices.Equal(waited, want) {
					t.Error("the key's documents were not handled in order")
				}
				time.Sleep(5 * time.Second)
				if l := w.leases()[0]; l.Continuation != `"3000"` || l.Health != changefeed.Healthy {
					t.Errorf("lease afterwards: continuation %s, health %q", l.Continuation, l.Health)
				}
			})
		})
	}
}

// What is done behind a document of the same key that is not, as the second of two
// that one transaction wrote in another order, is not handed over again.
func TestDoneCountsAlsoBehindWhatIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		tries := 0
		w.put(2, 1)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			tries++
			for i := len(b.Items) - 1; i >= 0; i-- {
				if i == 0 && tries < 4 {
					b.Answer(i, errNotNow)
					continue
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "both handled", func() bool { return got.distinct() == 2 })
		got.once(t)
	})
}

func TestEachAnswersForEveryItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g graves
		var busy atomic.Int32
		busy.Store(3)
		w.put(60, 6)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			switch {
			case hasID("doc-11")(string(item.Raw)):
				return changefeed.Refuse(errors.New("cannot handle this"))
			case hasID("doc-20")(string(item.Raw)) && busy.Add(-1) >= 0:
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.bury})
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 59 && g.count() == 1 })
		got.once(t)
		if l := g.letters[0]; l.ID != "doc-11" || l.Attempts != 5 || l.Waiting {
			t.Errorf("letter %+v", l)
		}
	})
}

// A function that can only say that a call failed is given one document at a time
// then, and may refuse that one.
func TestARefusalOfOneDocumentNeedsNoIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g graves
		got := newLedger()
		w.put(30, 3)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				if hasID("doc-8")(string(b.Items[i].Raw)) {
					return changefeed.Refuse(errors.New("cannot handle it"))
				}
			}
			for i := range b.Items {
				got.note(&b.Items[i])
			}
			return nil
		}), &changefeed.Options{DeadLetter: g.bury})
		eventually(t, 3*time.Minute, "all others are handled", func() bool { return got.distinct() == 29 && g.count() == 1 })
		got.once(t)
	})
}

// What waits fills the memory of a range: then it makes way before its limit.
func TestWhatWaitsMakesWayWhenItFillsTheRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g graves
		got := newLedger()
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if hasID("doc-1")(string(item.Raw)) {
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.bury, WaitLimit: 24 * time.Hour, MaxItems: 10, ReadAheadItems: 50, RetryMax: 2 * time.Second})
		w.put(1, 1) // doc-1 of key-0
		for range 100 {
			w.feed.Put(memfeed.Document{Key: "key-0", ID: fmt.Sprintf("doc-%d", w.docs.Add(1))})
			w.feed.Put(memfeed.Document{Key: "other", ID: fmt.Sprintf("doc-%d", w.docs.Add(1))})
			time.Sleep(time.Second)
		}
		eventually(t, time.Minute, "all others are handled", func() bool { return got.distinct() == 200 })
		if g.count() != 1 || !g.letters[0].Waiting {
			t.Fatalf("%d letters", g.count())
		}
		got.once(t)
	})
}

// An outage of everything never makes a document a dead letter, however long.
func TestAnOutageParksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var g graves
		var down atomic.Bool
		got := newLedger()
		w.put(20, 5)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if down.Load() {
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.bury, WaitLimit: time.Minute, Lanes: 4, MaxItems: 20, ReadAheadItems: 100})
		eventually(t, time.Minute, "handled before the outage", func() bool { return got.distinct() == 20 })
		down.Store(true)
		w.put(500, 50)
		time.Sleep(3 * time.Hour)
		down.Store(false)
		eventually(t, 2*time.Minute, "all handled", func() bool { return got.distinct() == 520 })
		if g.count() != 0 {
			t.Errorf("%d documents were given up on", g.count())
		}
		got.once(t)
	})
}

// A checkpoint of a manual handler vouches for what it has answered for, too.
func TestNoManualCheckpointBehindWhatIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var refused, stored atomic.Int32
		tries := 0
		w.put(5, 5)
		w.start("a", changefeed.Manual(func(ctx context.Context, b *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			tries++
			for i := range b.Items {
				if i == 2 && tries == 1 {
					b.Answer(i, errNotNow)
				} else {
					b.Answer(i, nil)
				}
			}
			if checkpoint(ctx) != nil {
				refused.Add(1)
			} else {
				stored.Add(1)
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "stored", func() bool { return stored.Load() == 1 })
		if refused.Load() != 1 || w.leases()[0].Continuation != `"5"` {
			t.Errorf("%d checkpoints refused, continuation %s", refused.Load(), w.leases()[0].Continuation)
		}
	})
}

// wanderer is a feed whose pages behind the first are empty: their position moves on.
type wanderer struct {
	changefeed.Feed
	reads, kept atomic.Int64
}

func (f *wanderer) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if req.Continuation == "" {
		return f.Feed.Read(ctx, req)
	}
	f.kept.Add(1)
	return &changefeed.Page{Continuation: fmt.Sprintf("%q", fmt.Sprint(1000+f.reads.Add(1))), CaughtUp: true, Release: func() { f.kept.Add(-1) }}, nil
}

// Empty pages behind one that is not done are one position, not a page each.
func TestEmptyPagesBehindAStuckOneAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &wanderer{Feed: w.feed}
		w.put(1, 1)
		var open atomic.Bool
		p, err := changefeed.New(feed, w.store, changefeed.Each(func(context.Context, changefeed.Item) error {
			if open.Load() {
				return nil
			}
			return errNotNow
		}), &changefeed.Options{Host: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(24 * time.Hour)
		if reads, kept := feed.reads.Load(), feed.kept.Load(); reads < 4000 || kept > 1 {
			t.Errorf("%d pages of %d are kept", kept, reads)
		}
		open.Store(true)
		time.Sleep(2 * time.Minute)
		if l := w.leases()[0]; checkpointLSN(t, l.Continuation) < 5000 {
			t.Errorf("continuation %s, want that of the last page", l.Continuation)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The sink is a destination like any: it is not written to while the lease may be
// another's.
func TestNoDeadLetterWhileTheLeaseIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		var buried atomic.Int32
		w.put(1, 1)
		var h *host
		started := make(chan struct{})
		h = w.start("a", changefeed.Each(func(context.Context, changefeed.Item) error {
			<-started
			// The machine was suspended, and nobody can be asked whose the lease is.
			ahead.Store(int64(time.Hour))
			h.link.noStore.Store(true)
			return changefeed.Refuse(errors.New("cannot handle this"))
		}), &changefeed.Options{
			MaxAttempts: 1, Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
			DeadLetter: func(context.Context, changefeed.DeadLetter) error { buried.Add(1); return nil },
		})
		close(started)
		time.Sleep(10 * time.Second)
		if buried.Load() != 0 {
			t.Error("a document was given to the sink while the lease was in doubt")
		}
		h.link.noStore.Store(false)
		eventually(t, time.Minute, "kept once the lease is sure", func() bool { return buried.Load() > 0 })
	})
}

// A host that passes its lease on finishes the page that one of its lanes has begun,
// in all lanes: nothing of it is delivered again.
func TestADrainFinishesThePageInEveryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		slow := changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				d := 20 * time.Millisecond
				if string(b.Items[i].Key) == `"key-0"` {
					d = time.Second // its lane is behind the others
				}
				if err := pause(ctx, d); err != nil {
					return err
				}
				got.note(&b.Items[i])
			}
			return nil
		})
		o := &changefeed.Options{Lanes: 8, MaxItems: 16, ReadAheadItems: 64, DrainTimeout: 30 * time.Second}
		w.put(160, 16)
		a := w.start("a", slow, o)
		time.Sleep(1500 * time.Millisecond)
		a.stop()
		w.start("b", slow, o)
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 160 })
		got.once(t)
	})
}
