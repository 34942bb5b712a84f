package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Drainer sends the events behind a gate in their order, then opens the gate: because an
// operator wants it, or because the gate was closed only until the broker accepts events
// again (Closing.Auto). Each step runs under the ownership of the range that the key lies
// in, so whoever may send the key's new events drains its old ones.
//
// While it drains, new events of the key are parked by the range's owner, which finds the
// gate closed. The gate opens only if its version says that nothing has come since no event
// was found behind it; from then on the owner finds it open and sends by itself.
type Drainer struct {
	store     DrainStore
	ranges    Ranges
	decoder   Decoder
	publisher Publisher
	opts      DrainOptions
	accepted  int              // events that the broker accepted
	waits     map[string]*wait // by key, of the gates that the last look found
}

// wait is how long a key is left alone that could not be sent.
type wait struct {
	tries    int       // in a row that failed
	until    time.Time // zero: it is tried
	wanted   time.Time // Intent.At: a new intent is tried at once
	accepted int       // Drainer.accepted at the last failure
}

// DrainOptions are the choices of NewDrainer. Zero means the default.
type DrainOptions struct {
	// Now is the clock of pauses and of what is stored. Required.
	Now func() time.Time
	// Poll is the time between two looks for what is wanted, and the first pause of a key
	// that could not be sent. The pauses double, up to a minute. Default 5 s.
	Poll time.Duration
	// Batch is how many events are sent in one step, for which an owner that gives the
	// range up waits. Default 90, and no more: a store takes so many away in one
	// transaction, so that all that was sent is gone, or nothing.
	Batch int
	// Stored is where Intent.FromStore reads. Default: none; such an intent is given up.
	Stored Stored
	// Drained, if set, is called after each try to drain a gate.
	Drained func(ctx context.Context, d Drained)
	// LookFailed, if set, is told each time that the store did not tell what is wanted.
	LookFailed func(ctx context.Context, err error)
}

const (
	// batchMax is what every store removes in one transaction, beside the gate and a
	// record of what was skipped: Cosmos DB takes 100 operations.
	batchMax = 90
	// drainPauseMax bounds the pauses after failures.
	drainPauseMax = time.Minute
	// failedEnough is how many keys in a row that could not be sent end a look: it is the
	// broker's fault then, and each further key would only wait for it.
	failedEnough = 3
)

// NewDrainer returns a drainer. store, ranges, decoder and publisher are required.
func NewDrainer(store DrainStore, ranges Ranges, decoder Decoder, publisher Publisher, opts DrainOptions) (*Drainer, error) {
	if store == nil || ranges == nil || decoder == nil || publisher == nil || opts.Now == nil {
		return nil, errors.New("new drainer: store, ranges, decoder, publisher and option Now are required")
	}
	opts.Poll = cmp.Or(opts.Poll, 5*time.Second)
	opts.Batch = cmp.Or(opts.Batch, batchMax)
	if opts.Poll < 0 || opts.Batch < 0 || opts.Batch > batchMax {
		return nil, fmt.Errorf("new drainer: options Poll and Batch must be positive, Batch at most %d", batchMax)
	}
	return &Drainer{store: store, ranges: ranges, decoder: decoder, publisher: publisher, opts: opts}, nil
}

// Run drains what it finds until ctx ends, then returns nil. It survives failures of
// the store and of the broker; while the store fails it looks ever less often, at last
// once a minute.
func (d *Drainer) Run(ctx context.Context) error {
	failed := 0
	for {
		gates, err := d.store.Intents(ctx)
		if err == nil {
			failed = 0
			d.look(ctx, gates)
		} else if ctx.Err() == nil {
			failed++
			tell(ctx, d.opts.LookFailed, err)
		}
		pause := d.pause(max(failed-1, 0))
		select {
		case <-time.After(time.Duration(float64(pause) * (0.8 + 0.4*rand.Float64()))):
		case <-ctx.Done():
			return nil
		}
	}
}

// pause is how long something is left alone that failed before, and before that so many
// times in a row.
func (d *Drainer) pause(failed int) time.Duration {
	return min(d.opts.Poll<<min(failed, 16), max(drainPauseMax, d.opts.Poll))
}

// look drains the gates whose pauses are over.
func (d *Drainer) look(ctx context.Context, gates []Gate) {
	waits := make(map[string]*wait, len(gates)) // those of other keys are forgotten
	failed := 0
	for _, g := range gates {
		intent := g.Wanted()
		if intent == nil {
			continue
		}
		w := d.waits[g.Key]
		if w == nil || !w.wanted.Equal(intent.At) {
			w = &wait{wanted: intent.At, accepted: d.accepted}
		}
		waits[g.Key] = w
		if ctx.Err() != nil || failed == failedEnough || d.opts.Now().Before(w.until) {
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
	d.waits = waits
}
