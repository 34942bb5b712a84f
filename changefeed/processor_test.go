package changefeed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

func TestOneHostDeliversEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.put(1000, 50)
		h := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "all changes delivered", func() bool { return w.got.count() == 1000 })
		w.put(500, 50)
		eventually(t, 5*time.Second, "later changes delivered", func() bool { return w.got.count() == 1500 })
		w.got.ordered(t)
		h.stop()
		for _, l := range w.leases() {
			if l.Owner != "" || l.Continuation != `"1500"` && l.LSN == 0 {
				t.Errorf("lease after the drain: owner %q, continuation %s", l.Owner, l.Continuation)
			}
		}
		w.start("a", nil, nil)
		time.Sleep(time.Minute)
		if n := w.got.count(); n != 1500 {
			t.Errorf("%d deliveries after a restart, want 1500: a drained host redelivers nothing", n)
		}
	})
}

func TestTwoHostsShareAndTakeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		a := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "a owns all", func() bool { return w.owners()["a"] == 8 })
		b := w.start("b", nil, nil)
		took := eventually(t, 15*time.Second, "shared", func() bool { o := w.owners(); return o["a"] == 4 && o["b"] == 4 })
		t.Logf("shared after %s", took)
		w.put(100, 10)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 100 })
		a.stop()
		took = eventually(t, 10*time.Second, "b owns all", func() bool { return w.owners()["b"] == 8 })
		t.Logf("drained to b after %s", took)
		w.put(100, 10)
		eventually(t, 5*time.Second, "delivered", func() bool { return w.got.count() == 200 })
		w.got.ordered(t)
		b.stop()
		if n := w.got.count(); n != 200 {
			t.Errorf("%d deliveries, want 200: balancing and draining redeliver nothing", n)
		}
	})
}

// The cycle of a host alone is slow while nothing changes.
func TestHostAloneNoticesTheEndOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, nil)
		eventually(t, 10*time.Second, "owned", func() bool { return w.owners()["a"] == 1 })
		for n := range 4 { // at any time between two cycles
			if err := w.operator().Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			w.put(1, 1)
			time.Sleep(time.Minute)
			if got := w.got.count(); got != n {
				t.Fatalf("%d deliveries before the end of pause %d", got, n)
			}
			if err := w.operator().Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, 7*time.Second, "delivered", func() bool { return w.got.count() > n })
		}
	})
}

// Two processes with one name are two hosts: both work, their leases are distinct, and both
// report the other.
func TestTwoHostsWithOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		var duplicates atomic.Int32
		o := &changefeed.Options{Observer: &changefeed.Observer{DuplicateHost: func(e changefeed.DuplicateHost) { duplicates.Add(1) }}}
		a := w.start("same", nil, o)
		b := w.start("same", nil, o)
		incarnations := func() map[string]int {
			counts := map[string]int{}
			for _, l := range w.leases() {
				counts[l.Incarnation]++
			}
			return counts
		}
		eventually(t, 10*time.Second, "shared", func() bool {
			c := incarnations()
			if len(c) != 2 {
				return false
			}
			for _, n := range c {
				if n != 2 {
					return false
				}
			}
			return true
		})
		w.put(200, 20)
		eventually(t, time.Minute, "both noticed", func() bool { return duplicates.Load() == 2 })
		eventually(t, time.Minute, "delivered", func() bool { return w.got.count() >= 200 })
		if n := w.got.count(); n != 200 {
			t.Errorf("%d deliveries, want 200", n)
		}
		a.stop()
		b.stop()
	})
}

// A host that crashed and restarts under its name does not wait for others, and does not
// take its former leases before they expire.
func TestRestartUnderTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		a := w.start("a", nil, nil)
		eventually(t, 5*time.Second, "a owns all", func() bool { return w.owners()["a"] == 4 })
		time.Sleep(time.Minute)
		before := w.leases()[0]
		a.crash()
		w.start("a", nil, &changefeed.Options{Observer: &changefeed.Observer{
			DuplicateHost: func(e changefeed.DuplicateHost) { t.Errorf("the dead host is reported: %+v", e) },
		}})
		took := eventually(t, 27*time.Second, "a's successor owns all", func() bool {
			for _, l := range w.leases() {
				if l.Incarnation == before.Incarnation || l.Owner != "a" {
					return false
				}
			}
			return true
		})
		if took < 15*time.Second {
			t.Errorf("after %s: the former process could still be running", took)
		}
	})
}

func TestRepeatedFailureIsLoggedOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := changefeed.LogObserver(slog.New(slog.NewTextHandler(&out, nil)))
		fail := func(n int, err error) {
			for i := range n {
				o.BatchFailed(changefeed.BatchFailed{LeaseRef: changefeed.LeaseRef{Lease: fmt.Sprintf("p..%d-FF", i)}, Err: err})
			}
		}
		missing := fmt.Errorf("blocked: entity_not_found: id %d: no such topic", 1)
		fail(17, missing)
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("17 failures are %d lines:\n%s", n, out.String())
		}
		fail(1, errors.New("refused: too_large: 2 MB")) // another cause is another line
		time.Sleep(61 * time.Second)
		fail(3, fmt.Errorf("blocked: entity_not_found: id %d: no such topic", 2))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[2], "repeated=16") {
			t.Errorf("after a minute:\n%s", out.String())
		}
		out.Reset()
		for range 40 { // 10 minutes
			fail(1, errors.New("blocked: entity_disabled: it lasts"))
			time.Sleep(15 * time.Second)
		}
		if n := strings.Count(out.String(), "\n"); n != 10 {
			t.Errorf("a failure of 10 minutes is %d lines:\n%s", n, out.String())
		}
		out.Reset()
		down := errors.New("dial: connection refused: 10.0.0.1") // of two servers on one machine
		fail(1, down)
		o.ReadFailed(changefeed.ReadFailed{Err: down})
		if n := strings.Count(out.String(), "\n"); n != 2 {
			t.Errorf("failures of two operations are %d lines:\n%s", n, out.String())
		}
	})
}

func TestLeaseNames(t *testing.T) {
	const token = "-1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"
	name := changefeed.LeaseName(token)
	if name != "7e9dd390" || changefeed.LeaseName("feedboxhost_db_container.."+token) != name {
		t.Errorf("the name of %s is %s, by its id %s", token, name, changefeed.LeaseName("feedboxhost_db_container.."+token))
	}
	if changefeed.LeaseName("") != "" || changefeed.LeaseName("-FF") == name {
		t.Error("names of nothing, or of another")
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

// Two programs with the same leases would each skip what the other has handled.
func TestAnotherPurposeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.start("a", nil, &changefeed.Options{Processor: "relay"})
		w.start("a", nil, &changefeed.Options{Processor: "feed", Purpose: "feed"})
		purposes := map[string]string{} // by the id of the record
		eventually(t, 10*time.Second, "both run", func() bool {
			records, err := w.store.List(t.Context(), "")
			for _, r := range records {
				if strings.HasSuffix(r.ID, ".info") {
					purposes[r.ID] = r.Purpose()
				}
			}
			return err == nil && len(purposes) == 2
		})
		if want := map[string]string{"relaymemory_db_coll.info": "", "feedmemory_db_coll.info": "feed"}; !maps.Equal(purposes, want) {
			t.Errorf("purposes %q, want %q", purposes, want)
		}
		for processor, purpose := range map[string]string{"relay": "feed", "feed": ""} {
			p, err := changefeed.New(w.feed, w.store, w.got, &changefeed.Options{Host: "b", Processor: processor, Purpose: purpose})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := p.Run(ctx); !errors.Is(err, changefeed.ErrPermanent) {
				t.Errorf("purpose %q on the leases of %s: error %v", purpose, processor, err)
			}
		}
	})
}
