package changefeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// idOf returns the id of a document.
func idOf(item *changefeed.Item) string {
	var doc struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(item.Raw, &doc); err != nil {
		return err.Error()
	}
	return doc.ID
}

// traffic writes a document of another key each time until the test ends. Its deliveries
// show that the handler works.
func (w *world) traffic(every time.Duration) {
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; pause(w.t.Context(), every) == nil; n++ {
			w.feed.Put(memfeed.Document{Key: fmt.Sprint("traffic-", n%7), ID: fmt.Sprint("traffic-", n)})
		}
	})
	w.t.Cleanup(running.Wait)
}

// stored reports whether the checkpoint of the only range is at an LSN.
func (w *world) stored(lsn int) bool {
	leases := w.leases()
	return len(leases) == 1 && leases[0].Continuation == fmt.Sprintf("%q", fmt.Sprint(lsn))
}

// follow fails if the documents of one of the keys were not handled in order.
func (l *ledger) follow(t *testing.T, keys int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	last := make([]int, keys)
	for _, id := range l.order {
		var n int
		if _, err := fmt.Sscanf(id, "doc-%d", &n); err != nil {
			continue
		}
		if key := (n - 1) % keys; n < last[key] {
			t.Errorf("%s was handled after doc-%d of its key", id, last[key])
		} else {
			last[key] = n
		}
	}
}

func TestErrorKeepsEarlierAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		calls := 0
		w.put(10, 10)
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			calls++
			for i := range b.Items {
				if calls == 1 && i == 5 {
					return errNotNow
				}
				got.note(&b.Items[i])
				b.Answer(i, nil)
			}
			return nil
		}), nil)
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 10 })
		got.once(t)
	})
}

func TestEachKeepsTheOrderOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		tries := 0
		w.put(30, 3)
		w.start("a", changefeed.Each(func(_ context.Context, item changefeed.Item) error {
			if idOf(&item) == "doc-5" {
				if tries++; tries < 4 {
					return errNotNow
				}
			}
			got.note(&item)
			return nil
		}), nil)
		eventually(t, time.Minute, "handled", func() bool { return got.distinct() == 30 })
		got.follow(t, 3)
		got.once(t)
	})
}

// Documents after one that cannot be decoded are handled once it is dead-lettered.
func TestTypedHandlerKeepsTheOrderOfAKey(t *testing.T) {
	type doc struct {
		ID string `json:"id"`
		N  int    `json:"n"`
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var got []string
		calls := 0
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, what)
		}
		for i := range 6 {
			var n any = i
			if i == 1 {
				n = "one"
			}
			w.feed.Put(memfeed.Document{Key: "k", ID: fmt.Sprint(i), More: map[string]any{"n": n}})
		}
		w.start("a", changefeed.Typed(func(_ context.Context, b *changefeed.Batch, docs []doc) error {
			if calls++; calls == 1 && len(docs) != 1 {
				t.Errorf("%d documents are delivered, 1 is before the bad one", len(docs))
			}
			note(docs[0].ID) // and of the others nothing is said
			b.Answer(0, nil)
			return nil
		}), &changefeed.Options{RetryMax: time.Second, DeadLetter: func(_ context.Context, l changefeed.DeadLetter) error {
			note("letter " + l.ID)
			return nil
		}})
		want := []string{"0", "letter 1", "2", "3", "4", "5"}
		eventually(t, 5*time.Minute, "handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= len(want) })
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
	})
}

// The same as TestDoneItemBehindHeldItemIsNotRedelivered, for a retry.
func TestDoneItemIsNotRedeliveredAfterRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		tries := 0
		w.feed.Put(memfeed.Document{Key: "k", ID: "doc-1"}, memfeed.Document{Key: "k", ID: "doc-2"})
		w.start("a", changefeed.HandlerFunc(func(_ context.Context, b *changefeed.Batch) error {
			if tries++; tries == 1 {
				return errNotNow
			}
			for i := range b.Items {
				if idOf(&b.Items[i]) == "doc-1" && tries < 4 {
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

// The checkpoint of a manual handler would also cover the waiting document.
func TestManualHandlerHoldsTheWholeRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		got := newLedger()
		tries := 0
		w.put(6, 6)
		w.start("a", changefeed.Manual(func(ctx context.Context, b *changefeed.Batch, checkpoint changefeed.Checkpoint) error {
			for i := range b.Items {
				if idOf(&b.Items[i]) == "doc-2" {
					if tries++; tries < 4 {
						return errNotNow
					}
				}
				got.note(&b.Items[i])
			}
			return checkpoint(ctx)
		}), &changefeed.Options{MaxItems: 1})
		eventually(t, time.Minute, "stored", func() bool { return w.stored(6) })
		if want := []string{"doc-1", "doc-2", "doc-3", "doc-4", "doc-5", "doc-6"}; !slices.Equal(got.order, want) {
			t.Errorf("handled %v, want %v", got.order, want)
		}
	})
}
