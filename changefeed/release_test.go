package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// endings counts the ends of a host's ownerships.
type endings struct {
	lost, released atomic.Int32
	reason         atomic.Value // of the last release
}

func (f *endings) observer() *changefeed.Observer {
	return &changefeed.Observer{
		LeaseLost:     func(changefeed.LeaseLost) { f.lost.Add(1) },
		LeaseReleased: func(e changefeed.LeaseReleased) { f.released.Add(1); f.reason.Store(e.Reason) },
	}
}

// check fails unless every lease was released and is unowned.
func (f *endings) check(t *testing.T, w *world, leases int) {
	t.Helper()
	if f.lost.Load() != 0 || int(f.released.Load()) != leases || w.owners()[""] != leases {
		t.Errorf("%d leases lost, %d released; owners %v; want all %d released", f.lost.Load(), f.released.Load(), w.owners(), leases)
	}
}

func isLease(op memstore.Op) bool { return strings.Contains(op.ID, "..") }

// The lease is released however long the store takes to reply.
func TestStopDuringLeaseWriteReleasesTheLease(t *testing.T) {
	for _, latency := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond} {
		for offset := range 3 { // thirds of the time to the answer
			t.Run(fmt.Sprintf("%s, %d of 3", latency, offset), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					applied := make(chan struct{}, 1)
					var armed atomic.Bool
					var writes atomic.Int32
					w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
						if op.Kind == memstore.Replace && isLease(op) && writes.Add(1) > 1 {
							t.Error("a write of the lease begins while another is under way")
						}
						return nil
					}, After: func(ctx context.Context, op memstore.Op) error {
						if op.Kind == memstore.Replace && isLease(op) {
							defer writes.Add(-1)
							if armed.Swap(false) {
								applied <- struct{}{}
							}
						}
						return pause(ctx, latency) // it took effect; the answer is on its way
					}})
					var end endings
					a := w.start("a", nil, &changefeed.Options{Observer: end.observer()})
					eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
					time.Sleep(5 * time.Second)
					armed.Store(true)
					w.put(10, 3)
					<-applied
					time.Sleep(latency / 3 * time.Duration(offset))
					a.stop()
					end.check(t, w, 1)
				})
			})
		}
	}
}

func TestStopWhileLeaseIsRetired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		retired := make(chan struct{})
		var narrower atomic.Bool
		w.store = memstore.New(&memstore.Options{After: func(ctx context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && w.owners()["a"] == 0 && narrower.Swap(false) {
				close(retired)
				return pause(ctx, time.Second) // it took effect; the answer is on its way
			}
			return nil
		}})
		var end endings
		a := w.start("a", nil, &changefeed.Options{Observer: end.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		narrower.Store(true)
		create(t, w, "changefeedmemory_db_coll..-20", `{"id":"changefeedmemory_db_coll..-20","version":1,"LeaseToken":"-20","FeedRange":{"Range":{"min":"","max":"20"}},"Owner":"b","ContinuationToken":"\"1\""}`)
		<-retired
		a.stop()
		if end.lost.Load() != 0 {
			t.Error("the lease that was retired is reported as lost")
		}
	})
}

// The conflict is not taken as another owner, and the operator's request is kept.
func TestStopAfterOperatorsWriteReleasesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		var end endings
		a := w.start("a", nil, &changefeed.Options{Observer: end.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		time.Sleep(3 * time.Second)
		if err := w.operator().PauseLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.stop()
		end.check(t, w, 3)
		for _, l := range w.leases() {
			if !l.Request.Paused {
				t.Errorf("lease %s forgot that it is paused", l.Token)
			}
		}
	})
}

// After a release and after a split the host recognizes its own write.
func TestLostReplyToLastWriteIsRecognized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var lose atomic.Bool
		w.store = memstore.New(&memstore.Options{After: func(_ context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && lose.Swap(false) {
				return errors.New("the answer got lost")
			}
			return nil
		}})
		var end endings
		a := w.start("a", nil, &changefeed.Options{Observer: end.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(3 * time.Second)
		lose.Store(true)
		w.feed.Split("20")
		eventually(t, 10*time.Second, "split", func() bool { return w.owners()["a"] == 2 })
		time.Sleep(3 * time.Second)
		lose.Store(true)
		a.stop()
		end.check(t, w, 2)
	})
}

// unknownSplit is a feed that splits once without naming the children.
type unknownSplit struct {
	changefeed.Feed
	splits, silent atomic.Bool
}

func (f *unknownSplit) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.splits.Swap(false) {
		return nil, &changefeed.SplitError{Range: req.Range}
	}
	return f.Feed.Read(ctx, req)
}

func (f *unknownSplit) Ranges(ctx context.Context) ([]changefeed.FeedRange, error) {
	if f.silent.Load() {
		return nil, errCut
	}
	return f.Feed.Ranges(ctx)
}

func TestLeaseOfUnknownSplitIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &unknownSplit{Feed: w.feed}
		var end endings
		p, err := changefeed.New(feed, w.store, w.got, &changefeed.Options{Observer: end.observer()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(time.Minute)
		feed.silent.Store(true)
		feed.splits.Store(true)
		time.Sleep(time.Minute)
		if feed.splits.Load() || end.released.Load() != 1 {
			t.Errorf("released %d leases, want the one that split; it has split: %t", end.released.Load(), !feed.splits.Load())
		}
		if got, want := end.reason.Load(), "the ranges of a split are not known"; got != want {
			t.Errorf("released because %q, want %q", got, want)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The report has the target and the reason, or the children, or the new owner.
func TestReleaseAndSplitAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		observer := &changefeed.Observer{
			LeaseReleased: func(e changefeed.LeaseReleased) { reported.note(e) },
			LeaseLost:     func(e changefeed.LeaseLost) { reported.note(e) },
			RangeSplit:    func(e changefeed.RangeSplit) { reported.note(e) },
		}
		a := w.start("a", nil, &changefeed.Options{Observer: observer, Renew: time.Second, PollMax: time.Second})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		if err := w.operator().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "taken again", func() bool { l := w.leases(); return l[0].Epoch == 2 })
		again := whole
		again.Epoch = 2
		reported.check(t, changefeed.LeaseReleased{LeaseRef: whole, Reason: "operator"})

		reported.events = nil
		w.feed.Split("20")
		eventually(t, 10*time.Second, "split", func() bool { return w.owners()["a"] == 2 })
		low, high := changefeed.FeedRange{Max: "20000000"}, changefeed.FeedRange{Min: "20000000", Max: "FF"}
		reported.check(t, changefeed.RangeSplit{LeaseRef: again, Owned: true, Children: []changefeed.FeedRange{low, high}})

		reported.events = nil
		time.Sleep(10 * time.Second)
		b := w.start("b", nil, nil)
		eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["b"] == 1 })
		passed := changefeed.LeaseRef{Lease: "changefeedmemory_db_coll..-20000000", Range: low, Epoch: 3}
		if w.leases()[1].Owner == "b" {
			passed.Lease, passed.Range = "changefeedmemory_db_coll..20000000-FF", high
		}
		reported.check(t, changefeed.LeaseReleased{LeaseRef: passed, To: "b", Reason: "balance"})

		b.stop()
		a.stop()
	})
}

// The children are the parts that the narrower leases leave open.
func TestReplacedLeaseIsReportedAsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var reported eventLog
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			LeaseReleased: func(e changefeed.LeaseReleased) { reported.note(e) },
			LeaseLost:     func(e changefeed.LeaseLost) { reported.note(e) },
			RangeSplit:    func(e changefeed.RangeSplit) { reported.note(e) },
		}})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		create(t, w, "changefeedmemory_db_coll..-20", `{"id":"changefeedmemory_db_coll..-20","version":1,"LeaseToken":"-20","FeedRange":{"Range":{"min":"","max":"20"}},"Owner":null,"ContinuationToken":"\"1\""}`)
		eventually(t, 2*time.Minute, "replaced", func() bool { // the host may own all three leases for a moment
			wide := func(l changefeed.Lease) bool { return l.Range == changefeed.FullRange() }
			return w.owners()["a"] == 2 && !slices.ContainsFunc(w.leases(), wide)
		})
		reported.check(t, changefeed.RangeSplit{LeaseRef: whole, Owned: true, Children: []changefeed.FeedRange{{Min: "20", Max: "FF"}}})
	})
}

// A lease that could not be renewed in time is reported without a new owner, and is not
// written any more.
func TestLostLeaseIsReportedWithItsOwner(t *testing.T) {
	for name, want := range map[string]struct {
		take func(t *testing.T, w *world, a *host)
		to   string
		err  error
	}{
		"taken":  {func(t *testing.T, w *world, _ *host) { asDotNet(t, w, "net") }, "net", changefeed.ErrLeaseLost},
		"fenced": {func(_ *testing.T, _ *world, a *host) { a.link.noStore.Store(true) }, "", changefeed.ErrFenced},
		"fenced during the release": {func(_ *testing.T, w *world, a *host) {
			w.put(1, 1)
			time.Sleep(25 * time.Second) // the handler has it
			a.link.noStore.Store(true)
			a.end()
		}, "", changefeed.ErrFenced},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var lost eventLog
			w.got.before = func(ctx context.Context, _ *changefeed.Batch) error { <-ctx.Done(); return ctx.Err() }
			a := w.start("a", nil, &changefeed.Options{DrainTimeout: time.Minute, Observer: &changefeed.Observer{
				LeaseReleased: func(e changefeed.LeaseReleased) { t.Errorf("%s: %+v", name, e) },
				LeaseLost:     func(e changefeed.LeaseLost) { lost.note(e) },
			}})
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
			time.Sleep(time.Minute)
			want.take(t, w, a)
			time.Sleep(40 * time.Second)
			lost.mu.Lock()
			defer lost.mu.Unlock()
			if len(lost.events) != 1 {
				t.Fatalf("%s: reported %+v, want it lost once", name, lost.events)
			}
			if e, _ := lost.events[0].(changefeed.LeaseLost); e.LeaseRef != whole || e.To != want.to || !errors.Is(e.Err, want.err) {
				t.Errorf("%s: reported %+v, want it lost to %q, %v", name, e, want.to, want.err)
			}
			a.end()
		})
	}
}

// It is not reported as split or released, and the other owner's record is kept.
func TestLeaseTakenBeforeLastWriteIsReportedLost(t *testing.T) {
	for name, end := range map[string]func(w *world, a *host){
		"split":   func(w *world, _ *host) { w.feed.Split("20") },
		"release": func(_ *world, a *host) { a.end() },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var reported eventLog
			var armed atomic.Bool
			w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
				if op.Kind == memstore.Replace && armed.Swap(false) {
					asDotNet(t, w, "net")
				}
				return nil
			}})
			a := w.start("a", nil, &changefeed.Options{Expiry: time.Hour, PollMax: time.Second, Observer: &changefeed.Observer{
				LeaseReleased: func(e changefeed.LeaseReleased) { reported.note(e) },
				LeaseLost:     func(e changefeed.LeaseLost) { e.Err = nil; reported.note(e) },
				RangeSplit:    func(e changefeed.RangeSplit) { reported.note(e) },
			}})
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
			time.Sleep(10 * time.Second)
			armed.Store(true)
			end(w, a)
			time.Sleep(10 * time.Second)
			if reported.check(t, changefeed.LeaseLost{LeaseRef: whole, To: "net"}); t.Failed() || w.owners()["net"] != 1 {
				t.Errorf("%s: owners %v", name, w.owners())
			}
		})
	}
}
