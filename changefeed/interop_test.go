package changefeed_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/internal/simulation"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
)

// asDotNet writes every lease of the world like the .NET SDK's processor: Owner and the
// timestamp only.
func asDotNet(t *testing.T, w *world, owner any) {
	t.Helper()
	records, err := w.store.List(t.Context(), "changefeed")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		var doc map[string]any
		if err := json.Unmarshal(r.Body, &doc); err != nil {
			t.Fatal(err)
		}
		if doc["LeaseToken"] == nil {
			continue
		}
		doc["Owner"], doc["timestamp"] = owner, time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
		if r.Body, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Replace(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// asJava takes every lease of the world like the Java SDK's processor. It treats a lease
// without a position as its own and rewrites it without the members it does not know. A
// position must be base64 of its own kind.
func asJava(t *testing.T, w *world) (taken int) {
	t.Helper()
	records, err := w.store.List(t.Context(), "changefeed")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		var doc map[string]any
		if err := json.Unmarshal(r.Body, &doc); err != nil {
			t.Fatal(err)
		}
		if doc["FeedRange"] == nil {
			continue // the root of all leases
		}
		if position, ok := doc["ContinuationToken"].(string); ok {
			if _, err := base64.StdEncoding.DecodeString(position); err != nil {
				continue // "Illegal base64 character": it gives up
			}
		}
		taken++
		doc["Owner"] = "java"
		delete(doc, "properties")
		if r.Body, err = json.Marshal(doc); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.Replace(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return taken
}

// From its first record on, a lease has a position that Java cannot treat as its own, for
// every Start and before its first checkpoint.
func TestJavaTakesNoLeaseWithoutACheckpoint(t *testing.T) {
	for name, start := range map[string]changefeed.Start{"beginning": changefeed.FromBeginning(), "time": changefeed.FromTime(time.Unix(1, 0)), "now": changefeed.FromNow()} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			hold := make(chan struct{})
			w.start("a", changefeed.HandlerFunc(func(ctx context.Context, b *changefeed.Batch) error {
				<-hold
				return w.got.Handle(ctx, b)
			}), &changefeed.Options{Start: start})
			for range 60 {
				if n := asJava(t, w); n > 0 {
					t.Fatalf("from the %s: Java takes %d leases", name, n)
				}
				time.Sleep(500 * time.Millisecond)
			}
			w.put(20, 10)
			time.Sleep(10 * time.Second)
			if n := asJava(t, w); n > 0 {
				t.Errorf("from the %s: Java takes %d leases whose first batch is being handled", name, n)
			}
			close(hold)
			eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 20 })
		})
	}
}

// The lease is not written or delivered any more, and the observer receives the new owner's
// name. The other product's host may have this host's name.
func TestLeaseTakenByAnotherProductIsLost(t *testing.T) {
	for _, name := range []string{"net", "a"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			var mu sync.Mutex
			var to []string
			w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
				LeaseLost: func(e changefeed.LeaseLost) { mu.Lock(); defer mu.Unlock(); to = append(to, e.To) },
			}})
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
			time.Sleep(time.Minute)
			asDotNet(t, w, name)
			time.Sleep(13 * time.Second) // Acquire is 10 s for a host alone, and jitters
			mu.Lock()
			if fmt.Sprint(to) != fmt.Sprintf("[%s %s]", name, name) {
				t.Errorf("lost to %v, want both to %s", to, name)
			}
			mu.Unlock()
			w.put(20, 10)
			for range 20 { // it renews each 17 s
				time.Sleep(17 * time.Second)
				if n := w.owners()[name]; n != 2 {
					t.Fatalf("%s has %d leases left: %v", name, n, w.owners())
				}
				asDotNet(t, w, name)
			}
			if n := w.got.count(); n != 0 {
				t.Errorf("%d deliveries of ranges another processes", n)
			}
			for _, l := range w.leases() {
				if l.Epoch != 1 || l.Expiry != 0 || l.Incarnation != "" {
					t.Errorf("lease %s: epoch %d, expiry %s, incarnation %q; want those of the other owner, which has none", l.Token, l.Epoch, l.Expiry, l.Incarnation)
				}
			}
			// It crashes. An owner without an expiry in its record has .NET's minute.
			took := eventually(t, 80*time.Second, "taken again", func() bool { return w.got.count() == 20 })
			if took < 59*time.Second {
				t.Errorf("taken again after %s without a renewal, want a minute", took)
			}
			for _, l := range w.leases() {
				if l.Epoch != 2 || l.Incarnation == "" {
					t.Errorf("lease %s has epoch %d, incarnation %q after it was taken again", l.Token, l.Epoch, l.Incarnation)
				}
			}
		})
	}
}

// A host without anything to write notices with its next listing.
func TestListingRevealsLeaseTakenByAnotherProduct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var lost atomic.Int32
		for _, name := range []string{"a", "b"} {
			w.start(name, nil, &changefeed.Options{
				Expiry: 5 * time.Minute, Acquire: time.Second, Observer: &changefeed.Observer{LeaseLost: func(changefeed.LeaseLost) { lost.Add(1) }},
			})
		}
		eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["a"] == 1 && w.owners()["b"] == 1 })
		time.Sleep(30 * time.Second)
		asDotNet(t, w, "net")
		eventually(t, 3*time.Second, "lost", func() bool { return lost.Load() == 2 })
	})
}

// It is acquired with a higher epoch, after the former owner cannot trust it any more.
func TestLeaseReleasedByAnotherProductIsAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		asDotNet(t, w, "net")
		time.Sleep(20 * time.Second)
		w.put(20, 10)
		asDotNet(t, w, nil)
		if err := w.operator().Retry(t.Context()); err != nil { // does not change whose it was
			t.Fatal(err)
		}
		// The former owner may trust the leases for its Expiry.
		took := eventually(t, 45*time.Second, "delivered", func() bool { return w.got.count() == 20 })
		if took < 19*time.Second {
			t.Errorf("acquired after %s", took)
		}
		for _, l := range w.leases() {
			if l.Epoch != 2 {
				t.Errorf("lease %s has epoch %d, want 2", l.Token, l.Epoch)
			}
		}
	})
}

// Hosts change from another product's processor to this one and back, under load and
// faults.
func TestSimulationBesideAnotherProduct(t *testing.T) {
	first, seeds := seeds(t)
	var sum simulation.Report
	for n := first; n < first+uint64(max(4, seeds/4)); n++ {
		t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := simConfig(n)
				config.Splits, config.Foreign = false, true
				backend := &memBackend{feed: memfeed.New(&memfeed.Options{Ranges: 1 + int(n%6)}), store: memstore.New(nil)}
				report, err := simulation.Run(context.Background(), backend, config)
				if err != nil {
					t.Fatal(err)
				}
				if err := report.Err(); err != nil {
					t.Error(err)
				}
				sum.Add(report)
			})
		})
	}
	if sum.Foreign < sum.Runs {
		t.Errorf("another product acquired %d leases in %d runs: the simulation has no foreign host", sum.Foreign, sum.Runs)
	}
	t.Log(&sum)
}
