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
)

// A document that waited too long, and that the sink did not take, is the handler's again,
// which may be able to by now.
func TestWhatTheSinkDidNotTakeIsTriedAgain(t *testing.T) {
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
			open.Store(true) // what it waited for is there
			return errors.New("the sink is full")
		}})
		eventually(t, 10*time.Minute, "a letter", func() bool { return letters.Load() > 0 })
		time.Sleep(10 * time.Minute)
		if n := got.of("doc-1"); n != 1 || letters.Load() != 1 {
			t.Errorf("handled %d times, %d letters, want it handled once after one letter", n, letters.Load())
		}
	})
}

// Once a manual handler has saved its page, pages without items move the checkpoint.
func TestEmptyPagesMoveAManualCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &wanderer{Feed: w.feed}
		w.put(1, 1)
		stop := w.run(feed, changefeed.Manual(func(ctx context.Context, _ *changefeed.Batch, save changefeed.Checkpoint) error {
			return save(ctx)
		}), &changefeed.Options{})
		time.Sleep(10 * time.Minute)
		if l := w.leases()[0]; checkpointLSN(t, l.Continuation) < 1000 {
			t.Errorf("continuation %s, want that of an empty page", l.Continuation)
		}
		stop()
	})
}

// A new owner tries what the policy stopped: until it has succeeded or failed, the lease
// tells the cause, not that it waits for an operator.
func TestANewOwnerTriesAStoppedRange(t *testing.T) {
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
			t.Errorf("the lease tells %q, %q", l.Health, l.Error)
		}
		b.end()
	})
}

// How long a range has failed is counted across its owners.
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

// A read may say that the range was split while the list of physical ranges does not show
// it yet: the lease stays, and is read again.
func TestASplitThatTheListDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var mu sync.Mutex
		var ops []string
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch {
			case call < 4:
				return nil, &changefeed.SplitError{Range: changefeed.FullRange()}
			case call == 4:
				return change(1, "k"), nil
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{
			RangeSplit: func(changefeed.RangeSplit) { t.Error("the lease was split") },
			LeaseError: func(e changefeed.LeaseError) { mu.Lock(); defer mu.Unlock(); ops = append(ops, e.Op) },
		}})
		eventually(t, 2*time.Minute, "read", func() bool { return w.got.distinct() == 1 })
		mu.Lock()
		if fmt.Sprint(ops) != "[split split split]" {
			t.Errorf("errors told: %v, want one for each split", ops)
		}
		mu.Unlock()
		if l := w.leases(); len(l) != 1 || l[0].State != changefeed.LeaseLive || l[0].Range != changefeed.FullRange() {
			t.Errorf("leases %+v", l)
		}
		stop()
	})
}

// The parts of a range that was split may be told in any order.
func TestASplitIsToldInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		parts := []changefeed.FeedRange{{Min: "20", Max: "FF"}, {Min: "", Max: "10"}, {Min: "10", Max: "20"}}
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				return nil, &changefeed.SplitError{Range: changefeed.FullRange(), Children: parts} // the list does not show them yet
			}
			return &changefeed.Page{CaughtUp: true}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "split", func() bool { return w.owners()[""] == 0 && len(w.leases()) == 3 })
		for i, l := range w.leases() {
			if want := parts[(i+1)%3]; l.Range != want || l.State != changefeed.LeaseLive {
				t.Errorf("lease %d is of %s, %q, want %s", i, l.Range, l.State, want)
			}
		}
		stop()
	})
}

// A lease that contains narrower ones is retired by its owner, not under its hands.
func TestAnothersReplayedLeaseIsLeftToItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		body := func(lo, hi, owner string) (id, text string) {
			id = fmt.Sprintf("%s..%s-%s", prefix, lo, hi)
			return id, fmt.Sprintf(`{"id":%q,"version":1,"LeaseToken":"%s-%s","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":%s,"ContinuationToken":"\"1\""}`, id, lo, hi, lo, hi, owner)
		}
		wide, text := body("", "FF", `"net"`)
		create(t, w, wide, text)
		narrow, other := body("", "20", "null")
		create(t, w, narrow, other)
		w.start("a", nil, nil)
		for range 20 { // the owner lives
			time.Sleep(17 * time.Second)
			r, err := w.store.Read(t.Context(), wide)
			if err != nil || !strings.Contains(string(r.Body), `"Owner":"net"`) {
				t.Fatalf("the record of a live owner: %s, error %v", r.Body, err)
			}
			if _, err := w.store.Replace(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 3*time.Minute, "retired once its owner is gone", func() bool {
			leases := w.leases()
			return len(leases) == 2 && leases[0].ID == narrow && leases[1].Range.Min == "20" && w.owners()["a"] == 2
		})
	})
}

// A host looks again at the moment from which a lease may be taken, not up to a look later.
func TestATakeoverWaitsForNoLook(t *testing.T) {
	for range 20 { // when the host looks is drawn anew
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			a := w.start("a", nil, nil)
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
			w.start("b", nil, nil)
			time.Sleep(3 * time.Minute) // the fleet is calm
			a.crash()
			took := eventually(t, time.Minute, "taken", func() bool { return w.owners()["b"] == 1 })
			if most := 5*time.Second*12/10 + 20*time.Second + 100*time.Millisecond; took > most {
				t.Errorf("taken after %s, want at most a look and Expiry, %s", took, most)
			}
		})
	}
}

// The clock by which "now" is told may be wrong: a lease that is lost before anybody knew
// its position begins well before it.
func TestNowOfAWrongClockSkipsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, &changefeed.Options{
			Start: changefeed.FromNow(), Now: func() time.Time { return time.Now().Add(30 * time.Minute) },
		})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		w.put(10, 10)
		l := w.leases()[0]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		w.start("b", nil, nil)
		eventually(t, 2*time.Minute, "all that was written since", func() bool { return w.got.distinct() == 10 })
	})
}

// The lag is looked for behind pages that hold others' documents only.
func TestLagBehindAPageOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		a.stop()
		feed := &othersFirst{Feed: w.feed}
		lags, err := changefeed.NewOperator(feed, w.store, nil).Lag(t.Context())
		if err != nil || len(lags) != 1 || !lags[0].Known || lags[0].Transactions != 3 {
			t.Errorf("lags %+v, error %v; want 3 transactions", lags, err)
		}
	})
}

// othersFirst replies with an empty page, and with documents behind its position.
type othersFirst struct {
	changefeed.Feed
	reads int
}

func (f *othersFirst) Read(_ context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.reads++; f.reads > 10 {
		return nil, errRead
	}
	if req.Continuation != `"5"` {
		return &changefeed.Page{Continuation: `"5"`}, nil
	}
	page := change(6, "k")
	page.EndLSN = 8
	return page, nil
}

// A request for leases of which one does not exist is for none.
func TestOneNameThatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
		if err := w.operator().PauseLeases(t.Context(), w.leases()[0].Token, "no such lease"); err == nil {
			t.Error("of two leases named one does not exist, and that is no error")
		}
		if w.leases()[0].Request.Paused {
			t.Error("the other was paused")
		}
	})
}
