package changefeed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// A container restored from a backup counts its changes again. A reader that waited at its old
// position would skip them all and look idle.
func TestFeedThatEndsBeforeThePositionHoldsTheRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var failed, unread atomic.Int64
		o := &changefeed.Options{Observer: &changefeed.Observer{
			ReadFailed: func(e changefeed.ReadFailed) {
				if _, ahead := errors.AsType[*changefeed.AheadError](e.Err); ahead {
					failed.Add(1)
				}
			},
			RangeUnread: func(e changefeed.RangeUnread) {
				if _, ahead := errors.AsType[*changefeed.AheadError](e.Err); ahead && !e.Silent {
					unread.Add(1)
				}
			},
		}}
		a := w.start("a", nil, o)
		w.put(50, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
		a.stop()
		w.feed.Restore(10)
		a = w.start("a", nil, o)
		w.put(5, 5)
		time.Sleep(time.Hour)
		if n := w.got.count(); n != 50 || failed.Load() == 0 || unread.Load() == 0 {
			t.Fatalf("%d deliveries, %d failed reads, reported unread %d times; want 50, and reports", n, failed.Load(), unread.Load())
		}
		for _, l := range a.Lag() {
			if l.Known || l.Unknown != changefeed.UnknownLost || l.Health != changefeed.Unread || !strings.Contains(l.Error, "ahead of the feed") || l.Owner != "a" || l.Epoch != 2 {
				t.Errorf("lag %+v, want it unknown, the reason, and the lease kept", l)
			}
		}
		lags, err := w.operator().Lag(t.Context())
		if err != nil || len(lags) != 1 || lags[0].Known || !strings.Contains(lags[0].Error, "ahead of the feed") {
			t.Errorf("the operator's lag %+v, error %v; want it unknown, and the reason", lags, err)
		}
		if err := w.operator().Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "all that the container has is delivered", func() bool { return w.got.count() == 50+10+5 })
		eventually(t, time.Minute, "healthy", func() bool { return w.leases()[0].Health == changefeed.Healthy })
	})
}

// After a failover that lost changes, new changes soon reach the position. Reading on would skip
// those that reuse the numbers of lost ones.
func TestFailoverThatLosesChangesHoldsTheRangeForGood(t *testing.T) {
	for name, act := range map[string]func(*changefeed.Operator, context.Context, ...string) error{
		"restart": (*changefeed.Operator).Restart, "retry": (*changefeed.Operator).Retry,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				a := w.start("a", nil, nil)
				w.put(50, 5)
				eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
				w.feed.FailOver(40)
				time.Sleep(time.Minute)
				a.stop()
				w.start("a", nil, nil)
				w.put(30, 5)
				time.Sleep(time.Hour)
				if n := w.got.count(); n != 50 {
					t.Fatalf("%d deliveries, want none after the failover", n)
				}
				lags, err := w.operator().Lag(t.Context())
				if err != nil || len(lags) != 1 || lags[0].Known || !strings.Contains(lags[0].Error, "failed over") {
					t.Errorf("the operator's lag %+v, error %v; want it unknown, and the reason", lags, err)
				}
				if err := act(w.operator(), t.Context()); err != nil {
					t.Fatal(err)
				}
				want := map[string]int{"restart": 50 + 40 + 30, "retry": 50 + 20}[name]
				eventually(t, time.Minute, "delivered again", func() bool { return w.got.count() == want })
				eventually(t, time.Minute, "healthy", func() bool { return w.leases()[0].Health == changefeed.Healthy })
			})
		})
	}
}

// A retry is no proof that the feed has the changes before the position. Reading on would skip the changes that
// reuse the numbers of lost ones.
func TestRetryKeepsTheEndOfTheFeedThatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var end, failed atomic.Int64
		end.Store(100) // of which 1 is a document
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				return change(1, "k"), nil
			}
			return &changefeed.Page{CaughtUp: true, EndLSN: end.Load()}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{ReadFailed: func(changefeed.ReadFailed) { failed.Add(1) }}})
		time.Sleep(time.Minute)
		end.Store(50)
		eventually(t, time.Minute, "held", func() bool { return failed.Load() > 0 })
		if err := w.operator().Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := failed.Load()
		time.Sleep(time.Minute)
		if l := w.leases()[0]; failed.Load() == before || l.Reached != 100 || l.Request.Retry {
			t.Errorf("after the retry %d reads failed, and the lease is %+v; want the range held", failed.Load()-before, l)
		}
		stop()
	})
}

// A read that fails says nothing about the end of the feed. Otherwise a loss would never be recorded while every
// second read fails, and new changes would hide it.
func TestFailedReadsDoNotHideALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch {
			case call == 1:
				page := change(7, "k")
				page.Term = "0:1"
				return page, nil
			case call%2 == 0:
				return nil, errRead
			}
			return &changefeed.Page{CaughtUp: true, EndLSN: 5, Term: "0:2"}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{RetryMax: 2 * time.Second})
		eventually(t, time.Minute, "the loss is recorded", func() bool { l := w.leases(); return len(l) == 1 && l[0].Lost == 5 })
		stop()
	})
}

// The time of failed reads says nothing about the end of the feed: the replicas that reply before and after it may
// both be delayed for a moment.
func TestFailedReadsBetweenDelayedReplicasAreNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var failedOver time.Time
		last := false
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				page := change(7, "k")
				page.Term = "0:1"
				return page, nil
			}
			if failedOver.IsZero() {
				failedOver = time.Now()
			}
			page := &changefeed.Page{CaughtUp: true, EndLSN: 8}
			switch now := time.Since(failedOver); {
			case now > time.Second && now < time.Minute:
				return nil, errRead
			case now < time.Minute+3*time.Second:
				page.EndLSN = 5
			case !last:
				page, last = change(8, "k"), true
			}
			page.Term = "0:2"
			return page, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{RetryMax: time.Second})
		eventually(t, 2*time.Minute, "delivered", func() bool { return w.got.count() == 2 })
		stop()
	})
}

// A replica of the new region may be delayed for a moment. That is no loss.
func TestDelayedReplicaAfterAFailoverIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var failedOver time.Time
		last := false
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			page := &changefeed.Page{CaughtUp: true, EndLSN: 8}
			switch {
			case call == 1:
				page = change(7, "k")
				page.Term = "0:1"
				return page, nil
			case failedOver.IsZero():
				failedOver = time.Now()
				return nil, errRead
			case time.Since(failedOver) < 4*time.Second:
				page.EndLSN = 5
			case !last:
				page, last = change(8, "k"), true
			}
			page.Term = "0:2"
			return page, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 2 })
		stop()
	})
}

// The end of the feed is not a position that was read: a loss of changes after the last page that was
// read skips nothing, and the range is not held.
func TestLossOfChangesThatWereNotReadHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.put(50, 50)
		first := make(chan struct{})
		w.got.before = func(ctx context.Context, _ *changefeed.Batch) error {
			select {
			case <-first:
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		w.start("a", nil, &changefeed.Options{MaxItems: 10, ReadAheadItems: 10, HandlerTimeout: -1})
		time.Sleep(10 * time.Second)
		w.feed.FailOver(20)
		close(first)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 20 })
		w.put(5, 5)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 25 })
	})
}

// A failover that is complete before the next read may have lost changes, too. That is reported.
func TestFailoverIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		reported := 0
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseError: func(e changefeed.LeaseError) {
			if e.Op == changefeed.OpCheckHistory {
				reported++
			}
		}}})
		w.put(50, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
		w.feed.FailOver(50)
		w.put(5, 5)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 55 })
		time.Sleep(time.Minute)
		if reported != 1 {
			t.Errorf("reported %d times, want once", reported)
		}
	})
}

// The end of the feed counts, not only documents: deletes move it, too.
func TestEndOfTheFeedIsRememberedAcrossOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		end := int64(100) // of which 1 is a document
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			if call == 1 {
				return change(1, "k"), nil
			}
			return &changefeed.Page{CaughtUp: true, EndLSN: end}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{})
		time.Sleep(time.Minute)
		stop()
		end = 50
		failed := 0
		stop = w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{ReadFailed: func(changefeed.ReadFailed) { failed++ }}})
		time.Sleep(time.Minute)
		if stop(); failed == 0 {
			t.Error("the feed ends at 50, 100 was its end before, and nothing is reported")
		}
	})
}

// A delayed replica is no loss: the range continues once the replica has caught up, and one
// early reply is not reported.
func TestDelayedReplicaHoldsTheRangeUntilItCatchesUp(t *testing.T) {
	for _, replies := range []int64{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
				switch {
				case call == 1:
					return change(7, "k"), nil
				case call <= 1+replies:
					return &changefeed.Page{CaughtUp: true, EndLSN: 5}, nil
				case call == 2+replies:
					return change(8, "k"), nil
				}
				return &changefeed.Page{CaughtUp: true, EndLSN: 8}, nil
			}}
			failed := 0
			stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{ReadFailed: func(changefeed.ReadFailed) { failed++ }}})
			eventually(t, time.Hour, "delivered", func() bool { return w.got.count() == 2 })
			time.Sleep(10 * time.Second)
			l := w.leases()[0]
			if stop(); l.Health != changefeed.Healthy || l.Epoch != 1 || (failed > 0) != (replies > 1) {
				t.Errorf("%d early replies: %d reported; the lease is %+v", replies, failed, l)
			}
		})
	}
}

// A reply that shows the change after the position ends a delay: the next early reply is a first one.
func TestSecondDelayOfAReplicaIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &script{Feed: w.feed, read: func(_ context.Context, call int64) (*changefeed.Page, error) {
			switch call {
			case 1, 3, 5:
				return change(6+call, "k"), nil
			case 2, 4:
				return &changefeed.Page{CaughtUp: true, EndLSN: 5}, nil
			}
			return &changefeed.Page{CaughtUp: true, EndLSN: 11}, nil
		}}
		stop := w.run(feed, w.got, &changefeed.Options{Observer: &changefeed.Observer{ReadFailed: func(e changefeed.ReadFailed) { t.Errorf("reported %v", e.Err) }}})
		eventually(t, time.Hour, "delivered", func() bool { return w.got.count() == 3 })
		stop()
	})
}

// Positions of two histories are not compared, so no batch of an ownership mixes them.
func TestRestartGivesAllLeasesOneNewHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		type ownership struct {
			lease string
			epoch int64
		}
		var mu sync.Mutex
		histories := map[ownership]string{}
		w.got.before = func(_ context.Context, b *changefeed.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			o := ownership{b.Lease, b.Epoch}
			if known, there := histories[o]; there && known != b.History {
				t.Errorf("batches of %+v are of the histories %s and %s", o, known, b.History)
			}
			histories[o] = b.History
			return nil
		}
		w.start("a", nil, nil)
		w.put(60, 20)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 60 })
		before := w.leases()[0].History
		for n := 2; n <= 3; n++ {
			if err := w.operator().Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "delivered again", func() bool { return w.got.count() == n*60 })
			time.Sleep(10 * time.Second)
			now := w.leases()[0].History
			for _, l := range w.leases() {
				if l.History != now || now == before || l.Epoch != int64(n) || l.Request != (changefeed.Request{}) {
					t.Errorf("lease %+v, want one new history and epoch %d", l, n)
				}
			}
			before = now
		}
		w.put(20, 20)
		eventually(t, time.Minute, "later changes follow", func() bool { return w.got.distinct() == 80 })
	})
}

// The lease store was emptied, not the container: the positions continue, and their history.
func TestRecreatedLeasesKeepTheirHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.start("a", nil, nil)
		w.put(20, 20)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 20 })
		history := w.leases()[0].History
		records, err := w.store.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := w.store.Delete(t.Context(), r.ID, r.ETag); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, 10*time.Minute, "leases again", func() bool { return w.owners()["a"] == 2 })
		for _, l := range w.leases() {
			if l.History != history {
				t.Errorf("lease %s has the history %q, want %q as before", l.Token, l.History, history)
			}
		}
	})
}

// Everything in the new container is new, whatever Options.Start says.
func TestContainerCreatedAgainIsReadFromItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var recreated atomic.Int64
		o := &changefeed.Options{Start: changefeed.FromNow(), Observer: &changefeed.Observer{Recreated: func(e changefeed.Recreated) {
			if e.From.Container != "coll" || e.To.Container != "coll'" {
				t.Errorf("reported %+v", e)
			}
			recreated.Add(1)
		}}}
		a, b := w.start("a", nil, o), w.start("b", nil, o)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 && w.owners()["b"] == 1 })
		w.put(20, 20)
		eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 20 })
		w.feed.Recreate()
		for range 40 { // more changes than before, so that their LSNs are not below the old positions
			w.feed.Put(memfeed.Document{Key: "k", ID: "one"}, memfeed.Document{Key: "m", ID: "two"})
			w.put(1, 1)
		}
		eventually(t, time.Minute, "the new changes are delivered", func() bool { return w.got.count() >= 20+42 })
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 20+42 || recreated.Load() != 2 {
			t.Errorf("%d deliveries, reported %d times; want 62, by both hosts", n, recreated.Load())
		}
		if len(a.Lag())+len(b.Lag()) != 2 {
			t.Errorf("lag of a: %+v, of b: %+v", a.Lag(), b.Lag())
		}
	})
}

// A range that is held because changes were lost is still held after its lease was lost, too: the
// position that is remembered is the one after the lost changes.
func TestEmptiedLeaseStoreKeepsTheRangeHeld(t *testing.T) {
	for name, lose := range map[string]func(*memfeed.Container){
		"failover": func(c *memfeed.Container) { c.FailOver(40) },
		"restore":  func(c *memfeed.Container) { c.Restore(10) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				a := w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{}})
				w.put(50, 5)
				eventually(t, 10*time.Second, "delivered", func() bool { return w.got.count() == 50 })
				time.Sleep(time.Minute)
				lose(w.feed)
				time.Sleep(time.Minute)
				w.put(30, 5)
				time.Sleep(10 * time.Minute)
				if l := a.Lag(); len(l) != 1 || l[0].Unknown != changefeed.UnknownLost || w.got.count() != 50 {
					t.Fatalf("%d deliveries, lag %+v; want 50, and the range held", w.got.count(), l)
				}
				records, err := w.store.List(t.Context(), "")
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					for {
						fresh, err := w.store.Read(t.Context(), r.ID)
						if err != nil || w.store.Delete(t.Context(), r.ID, fresh.ETag) == nil {
							break
						}
					}
				}
				eventually(t, 10*time.Minute, "leases again", func() bool { return w.owners()["a"] == 1 })
				time.Sleep(10 * time.Minute)
				if l := a.Lag(); len(l) != 1 || l[0].Unknown != changefeed.UnknownLost || w.got.count() != 50 {
					t.Errorf("%d deliveries, lag %q known %t of %d; want 50, and the range held as before", w.got.count(), l[0].Unknown, l[0].Known, l[0].Transactions)
				}
			})
		})
	}
}
