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
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/testenv"
)

// From now means from the creation of the leases, also if the first batch fails, or the
// host restarts before it saw a change.
func TestFromNowSkipsNothingAfterTheLeasesExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(100, 20)
		now := &changefeed.Options{Start: changefeed.FromNow()}
		fail := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return errors.New("not yet") })
		a := w.start("a", fail, now)
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		for _, l := range w.leases() {
			if l.Continuation != `"100"` {
				t.Errorf("lease %s starts at %q, want a concrete token", l.Token, l.Continuation)
			}
		}
		w.put(10, 10)
		time.Sleep(10 * time.Second)
		a.stop() // its first batches failed, nothing was handled
		w.put(10, 10)
		w.start("b", nil, now)
		eventually(t, 10*time.Second, "all 20 delivered", func() bool { return w.got.count() == 20 })
	})
}

func TestFromTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(50, 10)
		time.Sleep(time.Hour)
		since := time.Now()
		w.put(20, 10)
		o := &changefeed.Options{Start: changefeed.FromTime(since)}
		a := w.start("a", nil, o)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 20 })
		a.stop()
		w.start("a", nil, o) // the start is for leases without a checkpoint only
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 20 {
			t.Errorf("%d deliveries, want 20", n)
		}
	})
}

func TestFromSavedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(100, 10)
		a := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		a.stop()
		saved, err := w.operator().Export(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.put(30, 10)
		w.feed.Split("10")
		w.feed.Split("30")
		// Another processor starts at the positions of the first one, with other ranges.
		other := w.start("a", nil, &changefeed.Options{Processor: "other", Start: changefeed.FromTokens(saved...)})
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 130 })
		time.Sleep(time.Minute)
		other.stop()
		if n := w.got.count(); n != 130 {
			t.Errorf("%d deliveries, want 130", n)
		}
		p, err := changefeed.New(w.feed, memstore.New(nil), w.got, &changefeed.Options{Start: changefeed.FromTokens(saved[0])})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Run(ctx); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("tokens that do not cover the container: error %v", err)
		}
	})
}

// A saved position of a range without a checkpoint is a time.
func TestSavedTokensKeepTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(50, 10)
		time.Sleep(time.Hour)
		since := time.Now()
		w.put(20, 10)
		w.start("a", nil, &changefeed.Options{Start: changefeed.FromTokens(changefeed.RangeToken{Range: changefeed.FullRange(), Since: since})})
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 20 {
			t.Errorf("%d deliveries, want the 20 since the saved time", n)
		}
	})
}

// The store fails and loses replies, and hosts crash. The leases tile the key space before any
// of them is processed, and nothing is skipped.
func TestManyHostsInitializeAtOnce(t *testing.T) {
	for round := range testenv.Sample(t, 8, 20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 7)
			var calls atomic.Int64
			w.store = memstore.New(&memstore.Options{
				Before: func(_ context.Context, op memstore.Op) error {
					if n := calls.Add(1); n < 150 && (n*7+int64(round))%5 == 0 {
						return errors.New("unlucky")
					}
					return nil
				},
				After: func(_ context.Context, op memstore.Op) error {
					if n := calls.Load(); n < 150 && (n+int64(round))%4 == 0 {
						return errors.New("the answer got lost")
					}
					return nil
				},
			})
			w.put(100, 40)
			var hosts []*host
			for i := range 5 {
				hosts = append(hosts, w.start(fmt.Sprintf("h%d", i), nil, &changefeed.Options{Start: changefeed.FromNow()}))
			}
			time.Sleep(time.Duration(round*30) * time.Millisecond)
			hosts[0].crash()
			hosts[1].crash()
			time.Sleep(40 * time.Second)
			w.put(100, 40)
			eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 100 })
			time.Sleep(time.Minute)
			if n := w.got.distinct(); n != 100 {
				t.Errorf("round %d: %d changes delivered, want the 100 made from now on", round, n)
			}
			leases := w.leases()
			at := ""
			for _, l := range leases {
				if l.Range.Min != at {
					t.Errorf("round %d: lease %s begins at %q, want %q", round, l.ID, l.Range.Min, at)
				}
				at = l.Range.Max
			}
			if at != "FF" || len(leases) != 7 {
				t.Errorf("round %d: %d leases, up to %q", round, len(leases), at)
			}
		})
	}
}

// A process that stops during its start may lose the store or the feed first.
func TestStopDuringStartIsNoError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	store := memstore.New(&memstore.Options{Before: func(context.Context, memstore.Op) error {
		stop()
		return changefeed.ErrPermanent
	}})
	p, err := changefeed.New(memfeed.New(nil), store, newDeliveries(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		t.Errorf("error %v", err)
	}
}

// mutedStore is a lease store that never answers the first request of one kind.
type mutedStore struct {
	changefeed.LeaseStore
	mute  string
	muted atomic.Bool
}

func (s *mutedStore) answer(ctx context.Context, request string) error {
	if request == s.mute && s.muted.CompareAndSwap(false, true) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

func (s *mutedStore) List(ctx context.Context, prefix string) ([]changefeed.Record, error) {
	if err := s.answer(ctx, "list"); err != nil {
		return nil, err
	}
	return s.LeaseStore.List(ctx, prefix)
}

func (s *mutedStore) Read(ctx context.Context, id string) (changefeed.Record, error) {
	if err := s.answer(ctx, "read"); err != nil {
		return changefeed.Record{}, err
	}
	return s.LeaseStore.Read(ctx, id)
}

func (s *mutedStore) Create(ctx context.Context, r changefeed.Record) (string, error) {
	if err := s.answer(ctx, "create"); err != nil {
		return "", err
	}
	return s.LeaseStore.Create(ctx, r)
}

func (s *mutedStore) Replace(ctx context.Context, r changefeed.Record) (string, error) {
	if err := s.answer(ctx, "replace"); err != nil {
		return "", err
	}
	return s.LeaseStore.Replace(ctx, r)
}

func (s *mutedStore) Delete(ctx context.Context, id, etag string) error {
	if err := s.answer(ctx, "delete"); err != nil {
		return err
	}
	return s.LeaseStore.Delete(ctx, id, etag)
}

// A request to the lease store that is never answered stops neither the initialization nor a split nor an operator.
func TestUnansweredStoreRequestStopsNothing(t *testing.T) {
	for _, request := range []string{"list", "read", "create", "replace", "delete"} {
		t.Run(request, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				feed, store := memfeed.New(nil), memstore.New(nil)
				run := func(store changefeed.LeaseStore) (p *changefeed.Processor, stop func()) {
					idle := changefeed.HandlerFunc(func(context.Context, *changefeed.Batch) error { return nil })
					p, err := changefeed.New(feed, store, idle, &changefeed.Options{Host: "a"})
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- p.Run(ctx) }()
					return p, func() {
						if cancel(); <-ended != nil {
							t.Error("Run failed")
						}
					}
				}
				p, stop := run(&mutedStore{LeaseStore: store, mute: request})
				eventually(t, time.Minute, "initialized", func() bool { return len(p.Lag()) == 1 })
				stop()
				p, stop = run(&mutedStore{LeaseStore: store, mute: request})
				eventually(t, time.Minute, "owned", func() bool { return len(p.Lag()) == 1 })
				feed.Split("20")
				eventually(t, time.Minute, "split", func() bool { return len(p.Lag()) == 2 })
				stop()
				o := changefeed.NewOperator(feed, &mutedStore{LeaseStore: store, mute: request}, nil)
				for range 2 {
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					_ = errors.Join(o.Pause(ctx), o.Resume(ctx), o.PauseLeases(ctx))
					cancel()
					if took := time.Since(began); took > 2*time.Minute {
						t.Errorf("the operator waited for %s", took)
					}
				}
				if leases, err := o.Leases(t.Context()); err != nil || len(leases) != 2 || !leases[0].Request.Paused {
					t.Errorf("leases %+v, %v; want two that are paused", leases, err)
				}
			})
		})
	}
}
