package relayservice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/memfeed"
)

// After a rewind e3 is refused, which was accepted before. It is parked with all events after it.
func TestRewindParksARefusedEventAndItsFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var refuse atomic.Bool
		b.publish = func(_ context.Context, g *relay.Group) error {
			for _, m := range g.Messages {
				if refuse.Load() && m.ID == "e3" {
					return relay.Refuse("too_large", "too large")
				}
			}
			return nil
		}
		stop := b.run()
		for n := 1; n <= 5; n++ {
			b.put("k", fmt.Sprintf("e%d", n), n)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		refuse.Store(true)
		op := changefeed.NewOperator(placed{b.feed}, b.store.Leases, &changefeed.OperatorOptions{Processor: "feedbox"})
		if err := op.Rewind(t.Context(), changefeed.FromBeginning()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		events, _ := b.lot.First(t.Context(), "k", 100, 1<<30)
		var ids []string
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		for _, id := range []string{"e3", "e4", "e5"} {
			if !strings.Contains(strings.Join(ids, " "), id) && strings.Count(b.sent(), id) < 2 {
				t.Errorf("%s was neither sent again nor parked; sent %s, parked %v", id, b.sent(), ids)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The broker accepts nothing. Documents that are no events are handled meanwhile; they do not show
// that the broker works, so no key is parked.
func TestOutageParksNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var sends atomic.Int32
		b.publish = func(context.Context, *relay.Group) error {
			sends.Add(1)
			return &relay.Error{Class: relay.Outage, Reason: "connection_lost", Err: errors.New("away")}
		}
		stop := b.run()
		time.Sleep(time.Minute)
		for _, key := range []string{"a", "b"} {
			b.feed.Put(
				memfeed.Document{Key: key, ID: "contact", Data: map[string]any{}, More: map[string]any{"partitionKey": key, "type": "contact", "sequence": 1}},
				memfeed.Document{Key: key, ID: key + "1", Data: map[string]any{"action": "E", "sequence": 1}, More: map[string]any{"partitionKey": key, "type": "domainEvent"}},
			)
			time.Sleep(70 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		if closed, _ := b.lot.Closed(t.Context()); len(closed) > 0 || sends.Load() > 300 {
			t.Errorf("keys %v were parked; of %d sends none was accepted", closed, sends.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A publisher panics once, during a probe. The probe ends, and the next one is sent.
func TestPanicDuringProbeEndsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var mode atomic.Int32 // 0: away, 1: panic once, 2: well
		b.publish = func(context.Context, *relay.Group) error {
			switch mode.Load() {
			case 0:
				return &relay.Error{Class: relay.Outage, Reason: "connection_lost", Err: errors.New("away")}
			case 1:
				mode.Store(2)
				panic("a bug met once")
			}
			return nil
		}
		stop := b.run()
		for n := range 5 {
			b.put(fmt.Sprintf("k%d", n), fmt.Sprintf("k%d.1", n), 1)
		}
		time.Sleep(time.Minute)
		mode.Store(1)
		time.Sleep(time.Hour)
		if got := b.sent(); len(strings.Fields(got)) != 5 {
			t.Errorf("an hour after one panic %q of 5 events were sent (mode %d)", got, mode.Load())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// countingLot counts the calls of Closed, which take a while.
type countingLot struct {
	memoryLot
	n *atomic.Int64
}

func (l countingLot) Closed(ctx context.Context) ([]string, error) {
	l.n.Add(1)
	time.Sleep(50 * time.Millisecond)
	return l.memoryLot.Closed(ctx)
}

// All ranges that a relay acquires at its start share a few listings of the parked keys.
func TestRangesShareListingsOfParkedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.feed = memfeed.New(&memfeed.Options{Ranges: 32})
		b.store.Feed = placed{b.feed}
		var n atomic.Int64
		b.store.Parked = countingLot{b.lot, &n}
		for i := range 5000 {
			b.put(fmt.Sprintf("k%d", i), fmt.Sprintf("e%d", i), 1)
		}
		stop := b.run()
		time.Sleep(time.Minute)
		if n.Load() < 1 || n.Load() > 4 {
			t.Errorf("the parked keys were listed %d times for 32 ranges, want a few", n.Load())
		}
		if got := len(strings.Fields(b.sent())); got != 5000 {
			t.Errorf("%d events sent, want 5000", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
