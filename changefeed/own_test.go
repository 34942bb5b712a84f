package changefeed_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// callOwn makes a long call of Own and returns its error and its end.
func callOwn(h *host, key string, d time.Duration) (result chan error, ended *atomic.Int64) {
	result, ended = make(chan error, 1), &atomic.Int64{}
	go func() {
		result <- h.Own(context.Background(), key, func(ctx context.Context) error {
			defer func() { ended.Store(time.Now().UnixNano()) }()
			return pause(ctx, d)
		})
	}()
	time.Sleep(time.Millisecond)
	return result, ended
}

// keyIn returns a key in the physical range with that index.
func keyIn(t *testing.T, w *world, at int) string {
	t.Helper()
	ranges, err := w.feed.Ranges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for c := 'a'; c <= 'z'; c++ {
		if key := string(c); ranges[at].Has(memfeed.EPK(key)) {
			return key
		}
	}
	t.Fatalf("no key of one letter lies in range %d", at)
	return ""
}

func TestOwnRunsOnlyOnTheOwnerOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		a, b := w.start("a", nil, nil), w.start("b", nil, nil)
		eventually(t, 20*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 1 && o["b"] == 1 })
		for at := range 2 {
			key, calls := keyIn(t, w, at), 0
			for _, h := range []*host{a, b} {
				err := h.Own(t.Context(), key, func(context.Context) error { calls++; return nil })
				if err != nil && !errors.Is(err, changefeed.ErrNotOwned) {
					t.Error(err)
				}
			}
			if calls != 1 {
				t.Errorf("key %s of range %d: %d of two hosts own it", key, at, calls)
			}
		}
		if err := w.operator().Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for _, h := range []*host{a, b} {
			if err := h.Own(t.Context(), "a", func(context.Context) error { return nil }); !errors.Is(err, changefeed.ErrNotOwned) {
				t.Errorf("%s is paused: error %v", h.name, err)
			}
		}
		a.stop()
		if err := a.Own(t.Context(), "a", func(context.Context) error { return nil }); !errors.Is(err, changefeed.ErrNotOwned) {
			t.Errorf("not running: error %v", err)
		}
	})
}

// A release waits for the call as for a handler.
func TestRangeIsReleasedAfterOwnReturns(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, w *world, a *host){
		"drain":    func(_ *testing.T, _ *world, a *host) { go a.stop() },
		"hand-off": func(_ *testing.T, w *world, _ *host) { w.start("b", nil, nil) },
		"split":    func(_ *testing.T, w *world, _ *host) { w.feed.Split("08"); w.feed.Split("28") },
		"release": func(t *testing.T, w *world, _ *host) {
			if err := w.operator().Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"rewind": func(t *testing.T, w *world, _ *host) {
			if err := w.operator().Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, long := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				const limit = 20 * time.Second
				a := w.start("a", nil, &changefeed.Options{DrainTimeout: limit, Acquire: time.Second, PollMax: time.Second})
				eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 2 })
				w.put(10, 10)
				time.Sleep(3 * time.Second)
				keys := []string{keyIn(t, w, 0), keyIn(t, w, 1)}
				lasts := 8 * time.Second
				if long {
					lasts = time.Minute
				}
				began := time.Now()
				result, _ := callOwn(a, keys[0], lasts)
				second, _ := callOwn(a, keys[1], lasts)
				before := w.got.count()
				take(t, w, a)
				moved := func() bool {
					live := 0
					for _, l := range w.leases() {
						if l.Owner == "a" && l.Epoch == 1 && l.State == changefeed.LeaseLive {
							live++
						}
					}
					return live < 2 || w.got.count() > before
				}
				for !moved() {
					if time.Since(began) > 2*time.Minute {
						t.Fatalf("%s: nothing was taken", name)
					}
					time.Sleep(10 * time.Millisecond)
				}
				took := time.Since(began)
				if !long && took < lasts-10*time.Millisecond {
					t.Errorf("%s: taken after %s, before the call ended", name, took)
				}
				if long && (took < limit*2/5 || took > limit+5*time.Second) {
					t.Errorf("%s: taken after %s, want the drain limit of %s", name, took, limit)
				}
				if err := <-result; name != "hand-off" && (long != (errors.Is(err, changefeed.ErrDraining) && errors.Is(err, changefeed.ErrNotOwned)) || !long && err != nil) {
					t.Errorf("%s, long %t: the call ended with %v", name, long, err)
				}
				<-second //nolint:errcheck // a hand-off moves one of the two
			})
		}
	}
}

// The call ends before another host may own the lease.
func TestOwnEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.start("b", nil, nil)
		time.Sleep(10 * time.Second)
		a.link.noStore.Store(true)
		result, ended := callOwn(a, "a", time.Hour)
		eventually(t, time.Minute, "taken over", func() bool { return w.owners()["b"] == 1 })
		if at := ended.Load(); at == 0 || at >= time.Now().UnixNano()-int64(time.Second) {
			t.Errorf("the call ended %s before another owned the range", time.Duration(time.Now().UnixNano()-at))
		}
		if err := <-result; !errors.Is(err, changefeed.ErrFenced) || !errors.Is(err, changefeed.ErrNotOwned) {
			t.Errorf("the call ended with %v, want ErrFenced and ErrNotOwned", err)
		}
	})
}

func TestDoubtEndsOwnAndIsRenewedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		a := w.start("a", nil, &changefeed.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Second)
		err := a.Own(t.Context(), "a", func(ctx context.Context) error {
			ahead.Store(int64(time.Minute))
			return ctx.Err()
		})
		if err == nil {
			t.Error("the clock jumped during the call, which ended without an error")
		}
		if err := a.Own(t.Context(), "a", func(ctx context.Context) error { return ctx.Err() }); err != nil {
			t.Errorf("after the doubt: %v", err)
		}
	})
}

func TestOwnIsRefusedWhileDoubtRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var ahead atomic.Int64
		a := w.start("a", nil, &changefeed.Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Second)
		a.link.noStore.Store(true)
		ahead.Store(int64(time.Minute))
		err := a.Own(t.Context(), "a", func(context.Context) error { t.Error("called"); return nil })
		if !errors.Is(err, changefeed.ErrNotOwned) || !errors.Is(err, changefeed.ErrFenced) {
			t.Errorf("error %v, want ErrNotOwned and its cause", err)
		}
	})
}

// The result counts even if the ownership ended meanwhile. The call's context ends with it.
func TestOwnReturnsTheErrorOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		time.Sleep(time.Second)
		var err func() error // of the call's context
		for _, want := range []error{nil, errNotNow} {
			answer := func(ctx context.Context) error { err = ctx.Err; return want }
			if got := a.Own(t.Context(), "a", answer); !errors.Is(got, want) || err() == nil {
				t.Errorf("error %v, want %v; after the call its context ended with %v", got, want, err())
			}
			caller, leave := context.WithCancelCause(t.Context())
			got := a.Own(caller, "a", func(ctx context.Context) error { leave(errRead); return answer(ctx) })
			if (got == nil) != (want == nil) || want != nil && (!errors.Is(got, want) || !errors.Is(got, errRead) || errors.Is(got, changefeed.ErrNotOwned)) {
				t.Errorf("error %v of a call that returned %v while its caller left", got, want)
			}
		}
	})
}

func TestOwnFindsTheChildAfterASplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		a := w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		w.feed.Split("20")
		eventually(t, time.Minute, "split", func() bool { return w.owners()["a"] == 2 })
		time.Sleep(time.Second)
		for at := range 2 {
			if err := a.Own(t.Context(), keyIn(t, w, at), func(ctx context.Context) error { return ctx.Err() }); err != nil {
				t.Errorf("range %d: %v", at, err)
			}
		}
	})
}
