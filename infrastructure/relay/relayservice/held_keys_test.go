package relayservice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed/memfeed"
	"feedbox/tests/testenv"
)

// withoutStuck is a store of parked events that does not take events of the key "stuck".
type withoutStuck struct{ memoryLot }

func (l withoutStuck) Park(ctx context.Context, key string, events []relay.ParkedEvent, c *relay.Closing) (relay.ParkResult, error) {
	if key == "stuck" {
		return relay.ParkResult{}, errors.New("413: the document is too large")
	}
	return l.memoryLot.Park(ctx, key, events, c)
}

// One key can be neither sent nor parked. Each of 100 more keys is parked after MaxAttempts
// refusals.
func TestEveryRefusedKeyIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.Parked = withoutStuck{b.lot}
		var calls sync.Map
		b.publish = func(_ context.Context, g *relay.Group) error {
			n, _ := calls.LoadOrStore(g.Key, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
			if strings.HasPrefix(g.Key, "fine") {
				return nil
			}
			return relay.Refuse("too_large", "too large")
		}
		stop := b.run()
		b.put("stuck", "s1", 1)
		time.Sleep(time.Second)
		for n := range 100 {
			b.put(fmt.Sprintf("bad%d", n), fmt.Sprintf("b%d", n), 1)
			b.put(fmt.Sprintf("fine%d", n), fmt.Sprintf("f%d", n), 1)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Hour)
		closed, err := b.lot.Closed(t.Context())
		most := int64(0)
		calls.Range(func(k, v any) bool {
			if k != "stuck" {
				most = max(most, v.(*atomic.Int64).Load())
			}
			return true
		})
		if err != nil || len(closed) != 100 || most != 5 {
			t.Errorf("%d of 100 refused keys are parked, error %v; one was tried %d times", len(closed), err, most)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// One key can be neither sent nor parked. All other events are sent, and a graceful restart
// sends none of them again.
func TestStuckKeyStopsNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.Parked = withoutStuck{b.lot}
		b.publish = func(_ context.Context, g *relay.Group) error {
			if g.Key == "stuck" {
				return relay.Refuse("too_large", "too large")
			}
			return nil
		}
		count := func() (n, again int) {
			times := map[string]int{}
			for _, id := range strings.Fields(b.sent()) {
				if times[id]++; times[id] == 2 {
					again++
				}
			}
			return len(times), again
		}
		stop := b.run()
		b.put("stuck", "s1", 1)
		time.Sleep(time.Second)
		all := testenv.Sample(t, 24_000, 120_000) // 20 or 100 times ReadAheadItems, and some more
		for n := range all / 100 {
			docs := make([]memfeed.Document, 100)
			for i := range docs {
				key := fmt.Sprintf("k%d", i)
				docs[i] = memfeed.Document{
					Key: key, ID: fmt.Sprintf("e%d-%d", n, i), Data: map[string]any{"action": "E", "sequence": n + 1},
					More: map[string]any{"partitionKey": key, "type": "domainEvent"},
				}
			}
			b.feed.Put(docs...)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		if n, _ := count(); n != all {
			t.Errorf("%d of %d events of other keys are sent", n, all)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		stop = b.run()
		b.put("k1", "last", all)
		time.Sleep(time.Hour)
		if n, again := count(); n != all+1 || again > 0 {
			t.Errorf("after a graceful restart %d events are sent, %d of them twice", n, again)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
