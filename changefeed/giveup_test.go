package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memstore"
)

// farewell counts how a host's leases ended.
type farewell struct{ lost, released atomic.Int32 }

func (f *farewell) observer() *changefeed.Observer {
	return &changefeed.Observer{
		LeaseLost:     func(changefeed.LeaseLost) { f.lost.Add(1) },
		LeaseReleased: func(changefeed.LeaseReleased) { f.released.Add(1) },
	}
}

// check fails unless every lease was given up and is nobody's.
func (f *farewell) check(t *testing.T, w *world, leases int) {
	t.Helper()
	if f.lost.Load() != 0 || int(f.released.Load()) != leases || w.owners()[""] != leases {
		t.Errorf("%d leases lost, %d released; owners %v; want all %d given up", f.lost.Load(), f.released.Load(), w.owners(), leases)
	}
}

// A host that stops while a write of its lease is under way gives the lease up all
// the same, however long the store takes to answer.
func TestStopDuringALeaseWriteGivesTheLeaseUp(t *testing.T) {
	for _, latency := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond} {
		for offset := range 3 { // thirds of the time to the answer
			t.Run(fmt.Sprintf("%s, %d of 3", latency, offset), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1)
					applied := make(chan struct{}, 1)
					var armed atomic.Bool
					var writes atomic.Int32
					w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
						if op.Kind == memstore.Replace && writes.Add(1) > 1 {
							t.Error("a write of the lease begins while another is under way")
						}
						return nil
					}, After: func(ctx context.Context, op memstore.Op) error {
						if op.Kind == memstore.Replace {
							defer writes.Add(-1)
							if armed.Swap(false) {
								applied <- struct{}{}
							}
						}
						return pause(ctx, latency) // it took effect; the answer is on its way
					}})
					var end farewell
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

// A host that stops while it retires a lease for narrower ones does not lose it.
func TestStopWhileALeaseIsRetired(t *testing.T) {
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
		var end farewell
		a := w.start("a", nil, &changefeed.Options{Observer: end.observer()})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		narrower.Store(true)
		create(t, w, "changefeedmemory_db_coll..-20", `{"id":"changefeedmemory_db_coll..-20","version":1,"LeaseToken":"-20","FeedRange":{"Range":{"min":"","max":"20"}},"Owner":"b","ContinuationToken":"\"1\""}`)
		<-retired
		a.stop()
		if end.lost.Load() != 0 {
			t.Error("the lease that was retired is told as lost")
		}
	})
}

// An operator's write just before a host's last one is a conflict, not another owner,
// and what it asks for stays.
func TestStopBehindAnOperatorsWriteGivesTheLeaseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		var end farewell
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

// The answer to the last write may get lost: the host finds what it wrote, after a
// release and after a split.
func TestTheLastAnswerMayGetLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var lose atomic.Bool
		w.store = memstore.New(&memstore.Options{After: func(_ context.Context, op memstore.Op) error {
			if op.Kind == memstore.Replace && lose.Swap(false) {
				return errors.New("the answer got lost")
			}
			return nil
		}})
		var end farewell
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

// mute is a feed that splits once and does not tell into what.
type mute struct {
	changefeed.Feed
	splits, silent atomic.Bool
}

func (f *mute) Read(ctx context.Context, req changefeed.ReadRequest) (*changefeed.Page, error) {
	if f.splits.Swap(false) {
		return nil, &changefeed.SplitError{Range: req.Range}
	}
	return f.Feed.Read(ctx, req)
}

func (f *mute) Ranges(ctx context.Context) ([]changefeed.FeedRange, error) {
	if f.silent.Load() {
		return nil, errCut
	}
	return f.Feed.Ranges(ctx)
}

// A lease of a range that has split, nobody knows into what, is given up like others.
func TestALeaseOfAnUnknownSplitIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		feed := &mute{Feed: w.feed}
		var end farewell
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
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// How each ownership of a lease ends is told in full: whom it is meant for and why, what
// replaces it, or whose it is.
func TestHowALeaseEndedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
		observer := &changefeed.Observer{
			LeaseReleased: func(e changefeed.LeaseReleased) { told.note(e) },
			LeaseLost:     func(e changefeed.LeaseLost) { told.note(e) },
			RangeSplit:    func(e changefeed.RangeSplit) { told.note(e) },
		}
		a := w.start("a", nil, &changefeed.Options{Observer: observer, Renew: time.Second, PollMax: time.Second})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		if err := w.operator().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "taken again", func() bool { l := w.leases(); return l[0].Epoch == 2 })
		again := whole
		again.Epoch = 2
		told.check(t, changefeed.LeaseReleased{LeaseRef: whole, Reason: "operator"})

		told.events = nil
		w.feed.Split("20")
		eventually(t, 10*time.Second, "split", func() bool { return w.owners()["a"] == 2 })
		low, high := changefeed.FeedRange{Max: "20000000"}, changefeed.FeedRange{Min: "20000000", Max: "FF"}
		told.check(t, changefeed.RangeSplit{LeaseRef: again, Children: []changefeed.FeedRange{low, high}})

		told.events = nil
		time.Sleep(10 * time.Second)
		b := w.start("b", nil, nil)
		eventually(t, 10*time.Second, "shared", func() bool { return w.owners()["b"] == 1 })
		passed := changefeed.LeaseRef{Lease: "changefeedmemory_db_coll..-20000000", Range: low, Epoch: 3}
		if w.leases()[1].Owner == "b" {
			passed.Lease, passed.Range = "changefeedmemory_db_coll..20000000-FF", high
		}
		told.check(t, changefeed.LeaseReleased{LeaseRef: passed, To: "b", Reason: "balance"})

		b.stop()
		a.stop()
	})
}

// A lease that was retired for narrower ones is told as split into what they leave open, and
// not as given up.
func TestHowALeaseWasReplacedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var told diary
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			LeaseReleased: func(e changefeed.LeaseReleased) { told.note(e) },
			LeaseLost:     func(e changefeed.LeaseLost) { told.note(e) },
			RangeSplit:    func(e changefeed.RangeSplit) { told.note(e) },
		}})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		create(t, w, "changefeedmemory_db_coll..-20", `{"id":"changefeedmemory_db_coll..-20","version":1,"LeaseToken":"-20","FeedRange":{"Range":{"min":"","max":"20"}},"Owner":null,"ContinuationToken":"\"1\""}`)
		eventually(t, 2*time.Minute, "replaced", func() bool { return w.owners()["a"] == 2 })
		told.check(t, changefeed.RangeSplit{LeaseRef: whole, Children: []changefeed.FeedRange{{Min: "20", Max: "FF"}}})
	})
}

// A lease that another owner took is told as lost to that one; one that could not be
// renewed in time as lost to nobody known, and nothing of it is written any more.
func TestHowALeaseWasLostIsTold(t *testing.T) {
	for name, want := range map[string]struct {
		take func(t *testing.T, w *world, a *host)
		to   string
		err  error
	}{
		"taken":  {func(t *testing.T, w *world, _ *host) { asDotNet(t, w, "net") }, "net", changefeed.ErrLeaseLost},
		"fenced": {func(_ *testing.T, _ *world, a *host) { a.link.noStore.Store(true) }, "", changefeed.ErrFenced},
		"fenced while it is given up": {func(_ *testing.T, w *world, a *host) {
			w.put(1, 1)
			time.Sleep(25 * time.Second) // the handler has it
			a.link.noStore.Store(true)
			a.end()
		}, "", changefeed.ErrFenced},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var lost diary
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
				t.Fatalf("%s: told %+v, want it lost once", name, lost.events)
			}
			if e, _ := lost.events[0].(changefeed.LeaseLost); e.LeaseRef != whole || e.To != want.to || !errors.Is(e.Err, want.err) {
				t.Errorf("%s: told %+v, want it lost to %q, %v", name, e, want.to, want.err)
			}
			a.end()
		})
	}
}

// A lease that another owner takes just before this host's last write of it is told as lost,
// not as split or given up, and stays as the other wrote it.
func TestALeaseTakenBeforeItsLastWriteIsLost(t *testing.T) {
	for name, end := range map[string]func(w *world, a *host){
		"split":   func(w *world, _ *host) { w.feed.Split("20") },
		"release": func(_ *world, a *host) { a.end() },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			var told diary
			var armed atomic.Bool
			w.store = memstore.New(&memstore.Options{Before: func(_ context.Context, op memstore.Op) error {
				if op.Kind == memstore.Replace && armed.Swap(false) {
					asDotNet(t, w, "net")
				}
				return nil
			}})
			a := w.start("a", nil, &changefeed.Options{Expiry: time.Hour, PollMax: time.Second, Observer: &changefeed.Observer{
				LeaseReleased: func(e changefeed.LeaseReleased) { told.note(e) },
				LeaseLost:     func(e changefeed.LeaseLost) { e.Err = nil; told.note(e) },
				RangeSplit:    func(e changefeed.RangeSplit) { told.note(e) },
			}})
			eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
			time.Sleep(10 * time.Second)
			armed.Store(true)
			end(w, a)
			time.Sleep(10 * time.Second)
			if told.check(t, changefeed.LeaseLost{LeaseRef: whole, To: "net"}); t.Failed() || w.owners()["net"] != 1 {
				t.Errorf("%s: owners %v", name, w.owners())
			}
		})
	}
}
