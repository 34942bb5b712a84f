package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
type Drainer struct {
	store     DrainStore
	ranges    Ranges
	decoder   Decoder
	publisher Publisher
	opts      DrainOptions
	accepted  int                    // number of events that the broker accepted
	backoffs  map[string]*keyBackoff // by key, of the gates in the last poll
}

// keyBackoff is the backoff of a key that could not be sent.
type keyBackoff struct {
	tries    int       // consecutive failures
	until    time.Time // zero: retry at once
	intentAt time.Time // Intent.At; a newer intent is tried at once
	accepted int       // Drainer.accepted at the last failure
}

// DrainOptions are the choices of NewDrainer. Zero means the default.
type DrainOptions struct {
	// Now is the clock of backoffs and of stored times. Required.
	Now func() time.Time
	// Poll is the interval between polls for intents, and the first backoff of a key that
	// could not be sent. Backoffs double, up to a minute. Default 5 s.
	Poll time.Duration
	// Batch is the number of events sent in one step. An owner that releases the range
	// waits for the step. Default and maximum 90, because a store must remove all sent
	// events in one transaction.
	Batch int
	// Stored reads events for Intent.FromStore. Without it such an intent is dropped.
	Stored Stored
	// Drained, if set, is called after each attempt to drain a gate.
	Drained func(ctx context.Context, d DrainReport)
	// PollFailed, if set, is called each time that the store fails to return the intents.
	PollFailed func(ctx context.Context, err error)
}

const (
	// maxBatch is the number of events that every store can remove in one transaction,
	// together with the gate and a record of a skipped event. Cosmos DB allows 100
	// operations.
	maxBatch = 90
	// maxDrainPause bounds the backoff after failures.
	maxDrainPause = time.Minute
	// maxFailuresInRow is the number of consecutive key failures that end a poll, because
	// the broker is probably down and further keys would fail too.
	maxFailuresInRow = 3
)

// NewDrainer returns a drainer. store, ranges, decoder and publisher are required.
func NewDrainer(store DrainStore, ranges Ranges, decoder Decoder, publisher Publisher, opts DrainOptions) (*Drainer, error) {
	if store == nil || ranges == nil || decoder == nil || publisher == nil || opts.Now == nil {
		return nil, errors.New("new drainer: store, ranges, decoder, publisher and option Now are required")
	}
	opts.Poll = cmp.Or(opts.Poll, 5*time.Second)
	opts.Batch = cmp.Or(opts.Batch, maxBatch)
	if opts.Poll < 0 || opts.Batch < 0 || opts.Batch > maxBatch {
		return nil, fmt.Errorf("new drainer: options Poll and Batch must be positive, Batch at most %d", maxBatch)
	}
	return &Drainer{store: store, ranges: ranges, decoder: decoder, publisher: publisher, opts: opts}, nil
}

// Run polls and drains until ctx ends, then returns nil. It continues after failures of the
// store and of the broker. While the store fails it polls less and less often, down to once a
// minute.
func (d *Drainer) Run(ctx context.Context) error {
	failed := 0
	for {
		gates, err := d.store.Intents(ctx)
		if err == nil {
			failed = 0
			d.drainAll(ctx, gates)
		} else if ctx.Err() == nil {
			failed++
			notify(ctx, d.opts.PollFailed, err)
		}
		pause := d.pause(max(failed-1, 0))
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

// drainAll drains the gates whose backoff is over.
func (d *Drainer) drainAll(ctx context.Context, gates []Gate) {
	waits := make(map[string]*keyBackoff, len(gates)) // drops the entries of other keys
	failed := 0
	for _, g := range gates {
		intent := g.EffectiveIntent()
		if intent == nil {
			continue
		}
		w := d.backoffs[g.Key]
		if w == nil || !w.intentAt.Equal(intent.At) {
			w = &keyBackoff{intentAt: intent.At, accepted: d.accepted}
		}
		waits[g.Key] = w
		if ctx.Err() != nil || failed == maxFailuresInRow || d.opts.Now().Before(w.until) {
			continue
		}
		before := d.accepted
		err := d.drain(ctx, g.Key, w.accepted)
		if err == nil || d.accepted > before {
			failed, w.tries = 0, 0
		}
		if err != nil && !errors.Is(err, ErrNotOwned) {
			failed++
			w.tries, w.until, w.accepted = w.tries+1, d.opts.Now().Add(d.pause(w.tries)), d.accepted
		}
	}
	d.backoffs = waits
}
