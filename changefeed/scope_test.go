package changefeed_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
)

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
