package relayservice_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/changefeed"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
)

// A feed that waits for changes itself is read again at once, whatever PollMin is.
func TestWaitingFeedIsReadWithoutPause(t *testing.T) {
	for waits, want := range map[bool]string{true: "e1 e2", false: "e1"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.store.Waits, b.o.PollMin = waits, 5*time.Second
			b.put("k", "e1", 1)
			stop := b.run()
			time.Sleep(time.Second)
			b.put("k", "e2", 2)
			time.Sleep(100 * time.Millisecond)
			if got := b.sent(); got != want {
				t.Errorf("a feed that waits (%t): %q, want %q", waits, got, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// reads counts the reads of a feed.
type reads struct {
	placed
	n atomic.Int64
}

func (r *reads) Read(ctx context.Context, q changefeed.ReadRequest) (*changefeed.Page, error) {
	r.n.Add(1)
	return r.placed.Read(ctx, q)
}

// A longer PollBusy saves reads while changes follow each other quickly. PollMin and PollMax do not
// need to be raised with it.
func TestPollBusyTradesLatencyForReads(t *testing.T) {
	for busy, most := range map[time.Duration]int64{0: 3000, 100 * time.Millisecond: 130, 6 * time.Second: 60} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			feed := &reads{placed: placed{b.feed}}
			b.store.Feed, b.o.PollBusy = feed, busy
			stop := b.run()
			events := 0
			put := func(n int) {
				for range n {
					events++
					b.put("k", fmt.Sprint("e", events), events)
					time.Sleep(4 * time.Millisecond)
				}
			}
			put(1000)
			feed.n.Store(0)
			put(2500)
			if n := feed.n.Load(); n > most {
				t.Errorf("PollBusy %s: %d reads for 2,500 changes in 10 s, want at most %d", busy, n, most)
			}
			time.Sleep(30 * time.Second)
			if n := len(strings.Fields(b.sent())); n != 3500 {
				t.Errorf("PollBusy %s: %d of 3,500 events sent", busy, n)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Two processors with leases of their own, even in different containers, must not share the
// parked events.
func TestSecondProcessorWithTheSameParkedEventsIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "data", "leases", "parked")
	verify := func(processor string) error {
		store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
		must(t, err)
		broker, err := servicebus.NewRelayBroker(w.bus, &servicebus.RelayBrokerOptions{Topic: "orders"})
		must(t, err)
		service, err := relayservice.New(store, broker, &relayservice.Options{Processor: processor, Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return service.Verify(t.Context())
	}
	must(t, verify("one"))
	if err := verify("two"); err == nil || !strings.Contains(err.Error(), `belong to the processor "one", not to "two"`) {
		t.Errorf("the second processor: %v; want a refusal", err)
	}
	must(t, verify("one"))
	store, err := cosmosrelay.NewStore(w.store, &cosmosrelay.Options{Database: "shop"})
	must(t, err)
	if keys, err := store.Parked.Closed(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("the marker is listed as a parked key: %v, %v", keys, err)
	}
	if gates, err := store.Parked.Gates(t.Context()); err != nil || len(gates) > 0 {
		t.Errorf("the marker is listed as a gate: %v, %v", gates, err)
	}
}
