package changefeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// checkpointLSN returns the LSN of a lease's position.
func checkpointLSN(t *testing.T, continuation string) int64 {
	t.Helper()
	if continuation == "" {
		return 0
	}
	text, err := strconv.Unquote(continuation)
	if err != nil {
		t.Fatal(err)
	}
	lsn, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}

// laneRate returns the documents per second of one range with n changes of different keys,
// 5 ms each, in virtual time.
func laneRate(t *testing.T, lanes, n int) (rate float64) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(n, n)
		w.got.before = func(ctx context.Context, b *changefeed.Batch) error {
			return pause(ctx, time.Duration(len(b.Items))*5*time.Millisecond)
		}
		began := time.Now()
		w.start("a", nil, &changefeed.Options{Lanes: lanes, MaxItems: 1000, ReadAheadItems: n})
		eventually(t, time.Hour, "delivered", func() bool { return w.got.count() == n })
		rate = float64(n) / time.Since(began).Seconds()
		w.got.ordered(t)
	})
	return rate
}

// The seed of the lanes' hash differs in each run. Every document has a key of its own, because
// with some 150 keys a lane no seed fills a lane so much that the rate drops below the limit:
// one lane of 400 keys is 20 standard deviations away.
func TestLanesMultiplyTheRateOfARange(t *testing.T) {
	const n = 20_000
	serial := laneRate(t, 1, n)
	times := laneRate(t, 128, n) / serial
	t.Logf("5 ms a document, one range: %.0f documents/s serial; with 128 lanes %.1f times that", serial, times)
	if times < 50 {
		t.Errorf("%.1f times the serial rate, want 50", times)
	}
}

// With few keys most lanes have no key and some have several.
func TestManyLanesKeepTheOrderOfFewKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(2000, 20)
		w.got.before = func(ctx context.Context, b *changefeed.Batch) error {
			return pause(ctx, time.Duration(len(b.Items))*5*time.Millisecond)
		}
		w.start("a", nil, &changefeed.Options{Lanes: 128, MaxItems: 100})
		eventually(t, time.Hour, "delivered", func() bool { return w.got.count() == 2000 })
		w.got.ordered(t)
	})
}

// Lanes finish pages in any order. The stored position never passes an unfinished page.
func TestCheckpointIsTheLowWaterPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		rng := rand.New(rand.NewPCG(5, 5))
		var mu sync.Mutex
		handled := map[int64]bool{}
		low := int64(0) // every LSN up to it is handled
		handler := changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			mu.Lock()
			d := time.Duration(rng.IntN(200)) * time.Millisecond
			mu.Unlock()
			if err := pause(ctx, d); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range b.Items {
				handled[b.Items[i].LSN] = true
			}
			for handled[low+1] {
				low++
			}
			return nil
		})
		var checked atomic.Int64
		o := &changefeed.Options{Lanes: 16, MaxItems: 10, CheckpointEvery: -1, Observer: &changefeed.Observer{
			CheckpointWritten: func(e changefeed.CheckpointWritten) {
				mu.Lock()
				defer mu.Unlock()
				checked.Add(1)
				if lsn := checkpointLSN(t, e.Continuation); lsn > low {
					t.Errorf("checkpoint %d, but only %d is handled", lsn, low)
				}
			},
		}}
		w.start("a", handler, o)
		w.put(2000, 100)
		eventually(t, time.Hour, "all handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(handled) == 2000 })
		if checked.Load() < 20 {
			t.Errorf("%d checkpoints seen", checked.Load())
		}
	})
}

func TestMemoryInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(5000, 500)
		gate := make(chan struct{})
		var read atomic.Int64
		w.got.before = func(ctx context.Context, b *changefeed.Batch) error {
			select {
			case <-gate:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		w.start("a", nil, &changefeed.Options{Lanes: 8, MaxItems: 50, ReadAheadItems: 200, HandlerTimeout: -1, Observer: &changefeed.Observer{
			PageRead: func(e changefeed.PageRead) { read.Add(int64(e.Items)) },
		}})
		time.Sleep(time.Minute)
		if n := read.Load(); n != 200 {
			t.Errorf("%d items in flight, want the 200 allowed", n)
		}
		began := time.Now()
		close(gate)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 5000 })
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("delivered after %s: reading waits for more than room", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(5000, 500)
		var read atomic.Int64
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { <-ctx.Done(); return ctx.Err() }
		h := w.start("a", nil, &changefeed.Options{MaxItems: 10, ReadAheadItems: 5000, ReadAheadBytes: 5000, Observer: &changefeed.Observer{
			PageRead: func(e changefeed.PageRead) { read.Add(int64(e.Bytes)) },
		}})
		time.Sleep(time.Minute)
		if n := read.Load(); n < 5000 || n > 7000 {
			t.Errorf("%d bytes in flight, want about 5000", n)
		}
		h.stop()
	})
}

func TestKeyOptionDefinesTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		for i := range 300 {
			w.feed.Put(memfeed.Document{Key: fmt.Sprintf("pk-%d", i), ID: "x", More: map[string]any{"tenant": fmt.Sprintf("t%d", i%7)}})
		}
		rng := rand.New(rand.NewPCG(9, 9))
		var mu sync.Mutex
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			mu.Lock()
			d := time.Duration(rng.IntN(50)) * time.Millisecond
			mu.Unlock()
			return pause(ctx, d)
		}
		w.start("a", nil, &changefeed.Options{Lanes: 16, MaxItems: 20, Key: changefeed.Field("tenant")})
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 300 })
		w.got.ordered(t)
		w.got.mu.Lock()
		defer w.got.mu.Unlock()
		if len(w.got.byKey) != 7 || len(w.got.byKey[`"t3"`]) == 0 {
			t.Errorf("%d keys, want the 7 tenants", len(w.got.byKey))
		}
	})
}

func TestBatchHasItsOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(3, 3)
		got := make(chan changefeed.Batch, 1)
		w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
			c := *b
			got <- c
			if _, limited := ctx.Deadline(); !limited {
				t.Error("the handler's context has no deadline")
			}
			return nil
		}), nil)
		b := <-got
		if b.Lease != "changefeedmemory_db_coll..-FF" || b.Token != "-FF" || b.Range != changefeed.FullRange() || b.Epoch != 1 || b.Attempt != 1 ||
			b.RequestCharge != 1 || b.SessionToken != "0:-1#3" || b.Continuation != `"3"` || len(b.Items) != 3 {
			t.Errorf("batch %+v", b)
		}
		if i := b.Items[0]; string(i.Key) != `"key-0"` || i.Time().IsZero() || !json.Valid(i.Raw) {
			t.Errorf("item %+v", i)
		}
	})
}
