package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Drainer sends the parked events of a key in order, then opens its gate. It does so on the
// intent of an operator, or automatically if the gate was closed only until the broker accepts
// events again (Closing.Auto). Each step runs under the ownership of the key's range, so that
// one process sends the old and the new events of a key.
//
// While it drains, the owner of the range finds the gate closed and parks new events of the
// key. The gate opens only if its version shows that no event was parked since the drainer
// found none. After that the owner finds it open and sends new events directly.
//
//	poll the intents ─▶ keys that are due, the longest waiting first ─▶ drainedKeys at a time
//	     ▲                                                                 │
//	     └── after Poll, or at once if keys are left ◀── Poll is over: each ends its step
//
// So neither many keys nor a key with many events delays a new intent by more than Poll and a
// step. All sends pass the breakers of the relay. While one pauses, a poll sends one probe of its shard.
type Drainer struct {
	store  DrainStore
	ranges Ranges
	relay  *Relay
	opts   DrainOptions
	turns  map[string]*keyTurn // by key, of the gates in the last poll
	turn   uint64              // number of the last turn
}

// keyTurn is the last turn of a key, and its backoff if it could not be sent.
type keyTurn struct {
	number   uint64    // 0 = none yet
	tries    int       // consecutive failures
	until    time.Time // zero: retry at once
	intentAt time.Time // Intent.At; a newer intent is tried at once
}

// DrainOptions are the choices of NewDrainer. Zero means the default.
type DrainOptions struct {
	// Poll is the interval between polls for intents, and the first backoff of a key that
	// could not be sent. Backoffs double, up to a minute. Default 5 s.
	Poll time.Duration
	// Batch is the number of events sent in one step. An owner that releases the range
	// waits for the step. Default and maximum 90, because a store must remove all sent
	// events in one transaction.
	Batch int
	// Stored reads events for Intent.FromStore. Without it such an intent is dropped.
	Stored Stored
	// Drained, if set, is called after each attempt to drain a gate. It must be safe for
	// concurrent use.
	Drained func(ctx context.Context, d DrainReport)
	// PollFailed, if set, is called each time that the store fails to return the intents.
	PollFailed func(ctx context.Context, err error)
}

const (
	// maxBatch is the number of events that every store can remove in one transaction,
	// together with the gate and a record of a skipped event. Cosmos DB allows 100
	// operations.
	maxBatch = 90
	// stepBytes bounds the documents of a step, because drainedKeys steps are in memory.
	stepBytes = 1 << 20
	// drainedKeys is the number of keys drained at a time. A key takes about seven requests,
	// most of them spent waiting.
	drainedKeys = 8
	// maxDrainPause bounds the backoff after failures.
	maxDrainPause = time.Minute
)

// NewDrainer returns a drainer that sends with r. store, ranges and r are required.
func NewDrainer(store DrainStore, ranges Ranges, r *Relay, opts DrainOptions) (*Drainer, error) {
	if store == nil || ranges == nil || r == nil {
		return nil, errors.New("new drainer: store, ranges and relay are required")
	}
	opts.Poll = cmp.Or(opts.Poll, 5*time.Second)
	opts.Batch = cmp.Or(opts.Batch, maxBatch)
	if opts.Poll < 0 || opts.Batch < 0 || opts.Batch > maxBatch {
		return nil, fmt.Errorf("new drainer: options Poll and Batch must be positive, Batch at most %d", maxBatch)
	}
	return &Drainer{store: store, ranges: ranges, relay: r, opts: opts}, nil
}

func (d *Drainer) now() time.Time { return d.relay.opts.Now() }

// Run polls and drains until ctx ends, then returns nil. It continues after failures of the
// store and of the broker. While the store fails it polls less and less often, down to once a
// minute.
func (d *Drainer) Run(ctx context.Context) error {
	failed := 0
	for {
		pause, left := d.opts.Poll, false
		gates, err := d.store.Intents(ctx)
		if err == nil {
			failed = 0
			left = d.drainAll(ctx, gates)
		} else if ctx.Err() == nil {
			pause = d.pause(failed)
			failed++
			notify(ctx, d.opts.PollFailed, err)
		}
		if left {
			pause = 0
		}
		select {
		case <-time.After(time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))):
		case <-ctx.Done():
			return nil
		}
	}
}

// pause returns the backoff after one failure and the given number of failures before it.
func (d *Drainer) pause(failed int) time.Duration {
	return min(d.opts.Poll<<min(failed, 16), max(maxDrainPause, d.opts.Poll))
}

// drainAll drains the gates whose backoff is over, and reports whether it had no time for some
// of their events.
func (d *Drainer) drainAll(ctx context.Context, gates []Gate) bool {
	end, free := d.now().Add(d.opts.Poll), make(chan struct{}, drainedKeys)
	var running sync.WaitGroup
	var left atomic.Bool
	for _, key := range d.due(gates) {
		free <- struct{}{}
		shard := d.relay.breakerOf(key)
		if shard.alone && shard.paused() {
			running.Wait() // one key is the probe; keys of other shards must not wait for it
		}
		if ctx.Err() != nil {
			break
		}
		if !shard.mayProbe() {
			<-free
			continue
		}
		if !d.now().Before(end) {
			left.Store(true)
			break
		}
		t := d.turns[key]
		d.turn++
		t.number = d.turn
		running.Go(func() {
			defer func() { <-free }()
			if d.drainKey(ctx, key, t, end) {
				left.Store(true)
			}
		})
	}
	running.Wait()
	return left.Load()
}

// due returns the keys whose backoff is over: first those that had no turn yet, of these first
// the ones that an operator waits for, then those whose last turn is the longest ago. It forgets
// all keys without a gate.
func (d *Drainer) due(gates []Gate) (keys []string) {
	before := d.turns
	d.turns = make(map[string]*keyTurn, len(gates))
	operators := make(map[string]bool)
	for i := range gates {
		key, intent := gates[i].Key, gates[i].EffectiveIntent()
		if intent == nil {
			continue
		}
		t := before[key]
		if t == nil || !t.intentAt.Equal(intent.At) {
			t = &keyTurn{intentAt: intent.At}
		}
		d.turns[key], operators[key] = t, gates[i].Intent != nil
		if !d.now().Before(t.until) {
			keys = append(keys, key)
		}
	}
	rank := func(key string) uint64 {
		r := 2 * d.turns[key].number
		if !operators[key] {
			r++
		}
		return r
	}
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return keys
}

// drainKey drains one key, sets its backoff, and reports whether steps are left. A pause of all
// sends is not the key's failure.
func (d *Drainer) drainKey(ctx context.Context, key string, t *keyTurn, end time.Time) (left bool) {
	sent, left, err := d.drain(ctx, key, end)
	if err == nil || sent > 0 {
		t.tries = 0
	}
	if err != nil && !errors.Is(err, ErrNotOwned) && !d.relay.breakerOf(key).paused() {
		t.tries, t.until = t.tries+1, d.now().Add(d.pause(t.tries))
	}
	return left
}
