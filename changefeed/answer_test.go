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

// ledger counts the handled documents by id.
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

// of returns how often a document was handled.
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

// A handler that stops at the first bad document and names it has not answered for the
// documents after it: they are delivered again.
func TestUnansweredDocumentIsNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		var g deadLetters
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
		}), &changefeed.Options{DeadLetter: g.store})
		eventually(t, time.Minute, "all others are handled", func() bool { return got.distinct() == 39 })
		eventually(t, time.Minute, "the bad one is kept", func() bool { return g.count() == 1 })
		got.once(t)
	})
}

// One key waits for an hour. Every other document is handled without delay and once. The
// checkpoint stays before the waiting document, which is handled in order afterwards.
func TestWaitingKeyHoldsNoOtherKey(t *testing.T) {
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

// An item that is done is not delivered again, even if an earlier item of the same key is
// not done, as with two items of one transaction.
func TestDoneItemBehindHeldItemIsNotRedelivered(t *testing.T) {
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
		var g deadLetters
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
		}), &changefeed.Options{DeadLetter: g.store})
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 59 && g.count() == 1 })
		got.once(t)
		if l := g.letters[0]; l.ID != "doc-11" || l.Attempts != 5 || l.Waiting {
			t.Errorf("letter %+v", l)
		}
	})
}

// A handler without answers gets one document at a time after a failure, and may refuse it.
func TestErrorForSingleDocumentMayRefuseIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
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
		}), &changefeed.Options{DeadLetter: g.store})
		eventually(t, 3*time.Minute, "all others are handled", func() bool { return got.distinct() == 29 && g.count() == 1 })
		got.once(t)
	})
}

// Waiting documents that fill the memory of a range are dead-lettered before their limit.
func TestFullWindowDeadLettersWaitingDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		got := newLedger()
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if string(item.Key) != `"other"` {
				return errNotNow
			}
			got.note(&item)
			return nil
		}), &changefeed.Options{DeadLetter: g.store, WaitLimit: 24 * time.Hour, MaxItems: 10, ReadAheadItems: 50, RetryMax: 2 * time.Second})
		for n := range 100 {
			w.put(1, 1)
			w.feed.Put(memfeed.Document{Key: "other", ID: fmt.Sprint("other-", n)}, memfeed.Document{Key: fmt.Sprint("waits-", n), ID: "waits"})
			time.Sleep(time.Second)
		}
		eventually(t, time.Minute, "all others are handled", func() bool { return got.distinct() == 100 })
		if g.count() < 50 || g.count() > 100 || !g.letters[0].Waiting {
			t.Fatalf("%d letters", g.count())
		}
		got.once(t)
	})
}

// The next owner begins with a window that waiting documents fill. It handles nothing else before that, and
// nothing more is read.
func TestFullWindowOfTheOwnerBeforeDeadLettersWaitingDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var g deadLetters
		got := newLedger()
		start := func(name string) *host {
			return w.start(name, changefeed.Each(func(_ context.Context, item changefeed.Item) error {
				if string(item.Key) != `"other"` {
					return errNotNow
				}
				got.note(&item)
				return nil
			}), &changefeed.Options{DeadLetter: g.store, WaitLimit: 24 * time.Hour, MaxItems: 10, ReadAheadItems: 20, RetryMax: 2 * time.Second})
		}
		put := func(kind string, n int) {
			for i := range n {
				name := fmt.Sprint(kind, "-", i)
				w.feed.Put(memfeed.Document{Key: name, ID: name})
			}
		}
		other := func(id string) { w.feed.Put(memfeed.Document{Key: "other", ID: id}) }
		a := start("a")
		put("waits", 15)
		for range 10 {
			other("between")
			time.Sleep(5 * time.Second)
		}
		a.stop()
		put("late", 15)
		other("last")
		start("b")
		eventually(t, 10*time.Minute, "the document after those that wait is handled", func() bool { return got.of("last") > 0 })
		if n := g.count(); n < 5 || n > 15 {
			t.Errorf("%d letters, want those that others have outlasted, as far as needed", n)
		}
	})
}

// A checkpoint of a manual handler covers the documents it refused, too.
func TestNoManualCheckpointAfterRefusedDocument(t *testing.T) {
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

// movingFeed is a feed whose pages after the first are empty but move the position.
type movingFeed struct {
	changefeed.Feed
	reads, kept atomic.Int64
}

func (f *movingFeed) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if req.Continuation == "" {
		return f.Feed.Read(ctx, req)
	}
	f.kept.Add(1)
	return &changefeed.Page{Continuation: fmt.Sprintf("%q", fmt.Sprint(1000+f.reads.Add(1))), CaughtUp: true, Release: func() { f.kept.Add(-1) }}, nil
}

// Empty pages after a page that is not done are merged into one position.
func TestEmptyPagesBehindAStuckOneAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &movingFeed{Feed: w.feed}
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

// The dead-letter sink is not written to either while another host may own the lease.
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
			// The machine was suspended, and the store cannot be reached to check the
			// lease.
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

// A host that hands its lease off finishes the page that one of its lanes has begun, in all
// lanes. Nothing of it is delivered again.
func TestDrainFinishesThePageInEveryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		slow := changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			for i := range b.Items {
				d := 20 * time.Millisecond
				if string(b.Items[i].Key) == `"key-0"` {
					d = time.Second // its lane is slower than the others
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
