package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
	"feedbox/changefeed/memstore"
	"feedbox/tests/record"
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
	for round := range 20 {
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

// From the positions that the hosts remember.
func TestEmptiedLeaseStoreLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.start("a", nil, &changefeed.Options{Start: changefeed.FromNow()})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 3 })
		w.put(100, 20)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(30 * time.Second)
		records, err := w.store.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		w.put(10, 20)
		for _, r := range records {
			for {
				fresh, err := w.store.Read(t.Context(), r.ID)
				if err != nil {
					break
				}
				if w.store.Delete(t.Context(), fresh.ID, fresh.ETag) == nil {
					break
				}
			}
		}
		w.put(10, 20)
		time.Sleep(12 * time.Second) // by now this host owns nothing; another one might still trust its lease
		if early, err := w.store.List(t.Context(), ""); err != nil || len(early) > 0 {
			t.Errorf("%d records made within Expiry, error %v", len(early), err)
		}
		w.put(10, 20)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 130 })
		if n := w.got.count(); n > 160 {
			t.Errorf("%d deliveries of 130 changes: the remembered positions were not used", n)
		}
		for _, l := range w.leases() {
			if l.Epoch < 2 {
				t.Errorf("lease %s has epoch %d, as before it was lost", l.Token, l.Epoch)
			}
		}
		record.Write(t, record.Result{
			Fault: "F23", Name: "every lease deleted while hosts run", Injections: 1, Of: 1, Events: 130,
			DuplicatesSent: int64(w.got.count() - 130), Note: "positions are remembered by the hosts that run; a fleet started on an empty store begins at Options.Start",
		})
	})
}

// One lost lease is created again at its position.
func TestLostLeaseIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var repaired atomic.Int32
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{GapRepaired: func(changefeed.GapRepaired) { repaired.Add(1) }}})
		eventually(t, 5*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		w.put(100, 40)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		time.Sleep(30 * time.Second)
		l := w.leases()[1]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		w.put(100, 40)
		took := eventually(t, time.Minute, "repaired", func() bool { return repaired.Load() == 1 })
		if took < 20*time.Second {
			t.Errorf("repaired after %s: a host may still trust the lease that was lost", took)
		}
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 4 })
		if again := w.leases()[1]; again.Epoch <= l.Epoch {
			t.Errorf("epoch %d, and %d before it was lost", again.Epoch, l.Epoch)
		}
		w.put(100, 40)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.distinct() == 300 })
		if n := w.got.count(); n > 360 {
			t.Errorf("%d deliveries of 300 changes", n)
		}
	})
}

// A lease that was lost while no host ran is created again at the processor's start, not at
// the beginning of the container.
func TestForgottenLeaseStartsAtTheProcessorsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(100, 40)
		time.Sleep(time.Hour)
		start := time.Now()
		a := w.start("a", nil, &changefeed.Options{Start: changefeed.FromTime(start)})
		eventually(t, time.Minute, "owned", func() bool { return w.owners()["a"] == 4 })
		a.stop()
		l := w.leases()[1]
		if err := w.store.Delete(t.Context(), l.ID, l.ETag); err != nil {
			t.Fatal(err)
		}
		var repaired atomic.Pointer[changefeed.GapRepaired]
		w.start("b", nil, &changefeed.Options{Observer: &changefeed.Observer{GapRepaired: func(e changefeed.GapRepaired) { repaired.Store(&e) }}})
		w.put(100, 40)
		eventually(t, 5*time.Minute, "delivered", func() bool { return w.got.distinct() >= 100 })
		if e := repaired.Load(); e == nil || e.Range != l.Range || !e.From.Since.Equal(start) {
			t.Errorf("repaired %+v, want %s from %s", e, l.Range, start)
		}
		if n := w.got.count(); n != 100 {
			t.Errorf("%d deliveries, want the 100 changes since the start", n)
		}
	})
}

// Leases of physical ranges come from older .NET processors.
func TestVersion0LeasesAreContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.put(100, 20)
		ranges, err := w.feed.Ranges(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		for i, r := range ranges {
			id := fmt.Sprintf("%s..%d", prefix, i)
			create(t, w, id, fmt.Sprintf(`{"id":%q,"LeaseToken":"%d","FeedRange":{"Range":{"min":%q,"max":%q}},"Owner":"net",`+
				`"ContinuationToken":"\"60\"","properties":{},"timestamp":"2026-01-01T00:00:00.0000000Z"}`, id, i, r.Min, r.Max))
		}
		w.start("a", nil, nil)
		eventually(t, 80*time.Second, "the rest is delivered", func() bool { return w.got.count() == 40 })
		w.feed.Split(memfeed.EPK("key-1"))
		w.put(50, 20)
		eventually(t, 30*time.Second, "delivered across a split", func() bool { return w.got.distinct() == 90 })
		versions := map[int]int{}
		for _, l := range w.leases() {
			versions[l.Version]++
		}
		if versions[0] != 1 || versions[1] != 2 {
			t.Errorf("lease versions after a split of one: %v", versions)
		}
	})
}

// Nothing is changed, also if the info record is missing.
func TestLeasesThatCannotBeContinuedAreRefused(t *testing.T) {
	for _, initialised := range []bool{true, false} {
		w := newWorld(t, 1)
		prefix := "changefeedmemory_db_coll"
		create(t, w, prefix+"..0", fmt.Sprintf(`{"id":%q,"LeaseToken":"0","Owner":null,"ContinuationToken":"\"60\""}`, prefix+"..0"))
		if initialised {
			create(t, w, prefix+".info", fmt.Sprintf(`{"id":%q}`, prefix+".info"))
		}
		before, _ := w.store.List(t.Context(), "")
		p, err := changefeed.New(w.feed, w.store, w.got, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err = p.Run(ctx)
		cancel()
		var refused *changefeed.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "FeedRange") || !strings.Contains(err.Error(), prefix+"..0") {
			t.Errorf("initialised %t: error %v", initialised, err)
		}
		if after, _ := w.store.List(t.Context(), ""); !reflect.DeepEqual(after, before) {
			t.Errorf("initialised %t: the records are now %s", initialised, after)
		}
	}
}

// Owned leases are still processed, and the host reports the unreadable one.
func TestUnreadableLeaseDoesNotStopTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		var refused atomic.Int32
		h := w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{LeaseError: func(e changefeed.LeaseError) {
			if _, ok := errors.AsType[*changefeed.RefusedError](e.Err); ok && e.Op == "cycle" && e.Lease == "" {
				refused.Add(1)
			}
		}}})
		defer h.crash() // ends its work also if Run has ended without
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		const bad = "changefeedmemory_db_coll..0"
		create(t, w, bad, fmt.Sprintf(`{"id":%q,"LeaseToken":"0"}`, bad))
		time.Sleep(time.Minute)
		w.put(10, 10)
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() == 10 })
		select {
		case err := <-h.done:
			t.Fatalf("the host ended with %v", err)
		default:
		}
		if refused.Load() == 0 {
			t.Error("the observer was not notified")
		}
	})
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

func create(t *testing.T, w *world, id, body string) {
	t.Helper()
	if _, err := w.store.Create(t.Context(), changefeed.Record{ID: id, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
}

// One name is a prefix of the other. The same name on two account hosts is one set of
// leases with LeasePrefixHost.
func TestProcessorsWithSimilarNamesShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.put(50, 10)
		second := newDeliveries()
		w.start("a", nil, &changefeed.Options{Processor: "app"})
		w.start("a", second, &changefeed.Options{Processor: "app2"})
		eventually(t, 10*time.Second, "both deliver all", func() bool { return w.got.count() == 50 && second.count() == 50 })
		for _, name := range []string{"app", "app2"} {
			leases, err := changefeed.NewOperator(w.feed, w.store, &changefeed.OperatorOptions{Processor: name}).Leases(t.Context())
			if err != nil || len(leases) != 3 {
				t.Errorf("%s has %d leases, error %v", name, len(leases), err)
			}
		}
		time.Sleep(time.Minute)
		third := newDeliveries()
		x := w.start("x", third, &changefeed.Options{Processor: "moved", LeasePrefixHost: "account.example"})
		eventually(t, 10*time.Second, "delivered", func() bool { return third.count() == 50 })
		x.stop()
		w.start("y", third, &changefeed.Options{Processor: "moved", LeasePrefixHost: "account.example"})
		time.Sleep(time.Minute)
		if third.count() != 50 || w.got.count() != 50 || second.count() != 50 {
			t.Errorf("deliveries %d, %d, %d; want 50 each", w.got.count(), second.count(), third.count())
		}
		for host, want := range map[string]int{"account.example": 3, "": 0} { // "": the feed's
			leases, err := changefeed.NewOperator(w.feed, w.store, &changefeed.OperatorOptions{Processor: "moved", LeasePrefixHost: host}).Leases(t.Context())
			if err != nil || len(leases) != want {
				t.Errorf("of host %q the operator sees %d leases, error %v; want %d", host, len(leases), err, want)
			}
		}
	})
}

// The leases tile the scope. The same name with another scope is refused.
func TestScopeLimitsTheProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(400, 80)
		low := changefeed.FeedRange{Min: "", Max: "18"}
		high := changefeed.FeedRange{Min: "18", Max: "FF"}
		rest := newDeliveries()
		w.start("a", nil, &changefeed.Options{Processor: "low", Scope: []changefeed.FeedRange{low}})
		w.start("a", rest, &changefeed.Options{Processor: "high", Scope: []changefeed.FeedRange{high}})
		eventually(t, 10*time.Second, "together they deliver all", func() bool { return w.got.count()+rest.count() == 400 })
		if w.got.count() == 0 || rest.count() == 0 {
			t.Errorf("deliveries %d and %d", w.got.count(), rest.count())
		}
		p, err := changefeed.New(w.feed, w.store, w.got, &changefeed.Options{Processor: "low", Scope: []changefeed.FeedRange{high}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(t.Context()); !errors.Is(err, changefeed.ErrPermanent) {
			t.Errorf("another scope under the same name: error %v", err)
		}
	})
}

// The wall clock may be wrong. A lease that is lost before its position was known starts
// well before it.
func TestLostLeaseOfFromNowStartsBeforeWrongClock(t *testing.T) {
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
