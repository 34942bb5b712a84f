package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
)

// remote returns a store whose requests take a while.
func remote(mem *parkedtest.Memory, took time.Duration) hooked {
	return hooked{mem, func(context.Context, string) error { time.Sleep(took); return nil }}
}

// slowly is a publisher whose sends take a while.
func slowly(b relay.Publisher, took time.Duration) relay.Publisher {
	return publisherCtx(func(ctx context.Context, groups []relay.Group) error {
		time.Sleep(took)
		return b.Publish(ctx, groups)
	})
}

// 10,000 keys are drained several at a time.
func TestManyKeysAreDrainedInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, took = 10_000, 5 * time.Millisecond
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for n := range keys {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		began := time.Now()
		run(t, newDrainer(t, remote(mem, took), slowly(b, took), relay.DrainOptions{}, nil))
		for b.count() < keys && time.Since(began) < time.Hour {
			settle(time.Second)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%d keys were drained in %s, want less than a minute", keys, took)
		}
	})
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent
}

// weighing is a store that knows the bytes of the documents that were read and not yet removed.
type weighing struct {
	hooked
	mu    sync.Mutex // guards the fields below
	bytes map[string]int
	most  int
}

func (s *weighing) First(ctx context.Context, key string, limit, maxBytes int) ([]relay.ParkedEvent, error) {
	events, err := s.hooked.First(ctx, key, limit, maxBytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes[key] = 0
	for _, e := range events {
		s.bytes[key] += len(e.Document)
	}
	sum := 0
	for _, n := range s.bytes {
		sum += n
	}
	s.most = max(s.most, sum)
	return events, err
}

// The memory for draining is bounded, however large the events are.
func TestDrainedBytesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 200 << 10
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for k := range 12 {
			key := fmt.Sprint("k", k)
			parkWaiting(t, r, key)
			last := 6
			if k == 0 {
				last = 90
			}
			for n := 2; n <= last; n++ {
				line := fmt.Sprintf("%s %s.%d %d %s", key, key, n, n, strings.Repeat("x", size))
				if failed := r.Handle(t.Context(), relay.Ownership{}, []relay.Change{{Raw: []byte(line), LSN: int64(n)}}); failed != nil {
					t.Fatal(failed)
				}
			}
		}
		s := &weighing{hooked: remote(mem, time.Millisecond), bytes: map[string]int{}}
		d, err := relay.NewDrainer(s, &owner{}, newRelay(t, slowly(b, 10*time.Millisecond), nil), relay.DrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, d)
		settle(time.Minute)
		if limit := 8 * (1<<20 + size + 100); b.count() != 90+11*6 || s.most > limit || s.most < 2<<20 {
			t.Errorf("%d events sent, up to %d bytes read at a time; want %d and at most %d", b.count(), s.most, 90+11*6, limit)
		}
	})
}

// A publisher that panics fails the key. The drainer continues with others, and with the key once
// the publisher recovers.
func TestPanickingPublisherDoesNotEndTheDrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem, drained := &broker{}, parkedtest.NewMemory(), &reportLog{}
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkWaiting(t, r, "a", "b")
		var mu sync.Mutex
		broken := true // guarded by mu
		run(t, newDrainer(t, mem, publisherCtx(func(ctx context.Context, groups []relay.Group) error {
			mu.Lock()
			defer mu.Unlock()
			if groups[0].Key == "a" && broken {
				panic("a bug")
			}
			return b.Publish(ctx, groups)
		}), relay.DrainOptions{}, drained))
		settle(10 * time.Minute)
		want(t, "sent", b.got["b"], "b1")
		if !strings.Contains(strings.Join(drained.all(), "\n"), "a sent 0 differ 0 skip false open false publisher_panic") {
			t.Errorf("reported %q, want the panic", drained.all())
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		settle(2 * time.Minute)
		want(t, "sent", b.got["a"], "a1")
	})
}

// An operator's intent is carried out within two polls, although thousands of keys are waiting for
// the broker.
func TestIntentDoesNotWaitForManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for n := range 5000 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		parkAll(t, r, "mine", 1)
		run(t, newDrainer(t, sorted{remote(mem, 50*time.Millisecond)}, b, relay.DrainOptions{}, nil))
		settle(time.Second)
		setIntent(t, mem, "mine", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		settle(10 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.got["mine"]) != 1 || b.sent == 5001 {
			t.Errorf("%d events sent, of the operator's key %v; want it before the others are done", b.sent, b.got["mine"])
		}
	})
}

// The key had its turn before, while it waited for the broker.
func TestIntentOfATriedKeyDoesNotWaitForManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &broker{fail: failing(errBusy, "mine")}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		parkWaiting(t, r, "mine")
		run(t, newDrainer(t, sorted{remote(mem, 50*time.Millisecond)}, b, relay.DrainOptions{}, nil))
		settle(time.Minute)
		for n := range 5000 {
			parkWaiting(t, r, fmt.Sprint("k", n))
		}
		setIntent(t, mem, "mine", relay.Intent{Verb: relay.VerbRetry, At: time.Now()})
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		settle(15 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.got["mine"]) != 1 || b.sent == 5001 {
			t.Errorf("%d events sent, of the operator's key %v; want it before the others are done", b.sent, b.got["mine"])
		}
	})
}

// sorted is a store that lists gates by key.
type sorted struct{ hooked }

func (s sorted) Intents(ctx context.Context) ([]relay.Gate, error) {
	gates, err := s.hooked.Intents(ctx)
	slices.SortFunc(gates, func(a, b relay.Gate) int { return strings.Compare(a.Key, b.Key) })
	return gates, err
}

// Keys with many events take turns with others, and are drained without pauses.
func TestLongBacklogsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 900
		b, mem := &broker{}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		for k := range 8 {
			parkAll(t, r, fmt.Sprint("k", k), length)
			setIntent(t, mem, fmt.Sprint("k", k), relay.Intent{Verb: relay.VerbRetry})
		}
		run(t, newDrainer(t, mem, slowly(b, 100*time.Millisecond), relay.DrainOptions{}, nil)) // 3 events a step: 30 s
		settle(time.Second)
		parkWaiting(t, r, "late")
		settle(10 * time.Second)
		b.mu.Lock()
		if n := len(b.got["late"]); n != 1 || b.sent > 8*length/2 {
			t.Errorf("%d events of the late key among %d, want it early", n, b.sent)
		}
		b.mu.Unlock()
		settle(25 * time.Second)
		if n := b.count(); n != 8*length+1 {
			t.Errorf("%d of %d events sent after 36 s, want all: there is no pause between turns", n, 8*length+1)
		}
	})
}

// The drainer sends through the breaker of the relay: a pause of the relay stops it, and what the
// relay sends is evidence about the drainer's keys.
func TestDrainerAndRelayShareTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, mem := &countingBroker{broker: broker{fail: failing(errBusy, "a", "b", "c")}}, parkedtest.NewMemory()
		r := newRelay(t, b, withParked(mem, relay.Options{}))
		r.Handle(t.Context(), relay.Ownership{}, changes("a a1 1", "b b1 1", "c c1 1")) // pauses all sends
		parkWaiting(t, r, "k0", "k1", "k2")
		d, err := relay.NewDrainer(mem, &owner{}, r, relay.DrainOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		b.fail = failing(errNotAllowed, "k0", "k1", "k2")
		b.mu.Unlock()
		run(t, d)
		synctest.Wait()
		b.mu.Lock()
		if b.calls != 1 {
			t.Errorf("%d sends during the pause of the relay, want none", b.calls-1)
		}
		b.mu.Unlock()
		settle(time.Hour)
		for _, key := range []string{"k0", "k1", "k2"} {
			if g := gateOf(t, mem, key); !g.Closing.Auto {
				t.Errorf("gate %+v, want it to wait for the broker", g)
			}
		}
		b.mu.Lock()
		b.fail = failing(errNotAllowed, "k0")
		b.mu.Unlock()
		for n := range 20 {
			r.Handle(t.Context(), relay.Ownership{}, changes(fmt.Sprintf("z z%d %d", n, n+1)))
			settle(10 * time.Second)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if g := gateOf(t, mem, "k0"); g.Closing.Auto || len(b.got["k1"])+len(b.got["k2"]) != 2 {
			t.Errorf("gate %+v, want k0 refused, because the relay's events are accepted", g)
		}
	})
}
