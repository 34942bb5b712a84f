package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"feedbox/domain/fault"
)

// Drainer does what operators want of parked keys: it sends the events behind a gate in
// their order, then opens the gate. Any relay may drain any gate; a claim on the gate
// sees to it that one does.
//
//	          intent                claimed                       nothing left
//	[closed] -------> [to be drained] -----> [draining] --------------------------> open
//	    ^                    ^                  |  |  send 100, remove them, renew
//	    |                    +--- outage -------+  |
//	    +----------------------- refused ----------+
//
// While it drains, new events of the key keep coming to the range's owner, which parks
// them at the end of the line: it finds the gate closed. The gate opens only if its
// version says that nothing has come since the line was found empty; from then on the
// owner finds it open and sends by itself.
//
// A Drainer runs one goroutine, that of Run.
type Drainer struct {
	lot       DrainLot
	decoder   Decoder
	publisher Publisher
	opts      DrainOptions
	seen      map[string]sighting // claims of others, by key
}

// DrainOptions are the choices of NewDrainer. Zero means the default.
type DrainOptions struct {
	// Owner names this process in claims. Required.
	Owner string
	// Token tells this run of the process from any other. Required.
	Token string
	// Now is the clock of claims and of what is stored. Required. Only differences of its
	// monotonic readings decide anything.
	Now func() time.Time
	// Poll is the time between two looks for intents. Default 5 s.
	Poll time.Duration
	// ClaimExpiry is how long a claim without a beat counts. Its holder sends nothing
	// after four fifths of it. Default 30 s.
	ClaimExpiry time.Duration
	// Batch is how many events are sent at a time. Default 100.
	Batch int
	// Drained, if set, is called after each try to drain a gate.
	Drained func(ctx context.Context, d Drained)
}

// Drained tells of a try to drain a gate.
type Drained struct {
	Key  string
	Sent int   // events sent
	Skip bool  // one was left out
	Open bool  // the gate is open now
	Err  error // why not
}

// sighting is when a claim was last seen to change.
type sighting struct {
	token string
	beat  int64
	at    time.Time
}

// NewDrainer returns a drainer. lot, decoder and publisher are required.
func NewDrainer(lot DrainLot, decoder Decoder, publisher Publisher, opts DrainOptions) (*Drainer, error) {
	var errs []error
	if lot == nil || decoder == nil || publisher == nil {
		errs = append(errs, errors.New("lot, decoder and publisher are required"))
	}
	if opts.Owner == "" || opts.Token == "" || opts.Now == nil {
		errs = append(errs, errors.New("options Owner, Token and Now are required"))
	}
	opts.Poll = cmp.Or(opts.Poll, 5*time.Second)
	opts.ClaimExpiry = cmp.Or(opts.ClaimExpiry, 30*time.Second)
	opts.Batch = cmp.Or(opts.Batch, 100)
	if opts.Poll < 0 || opts.ClaimExpiry < 0 || opts.Batch < 0 {
		errs = append(errs, errors.New("options Poll, ClaimExpiry and Batch must be positive"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("new drainer: %w", errors.Join(errs...))
	}
	if opts.Drained == nil {
		opts.Drained = func(context.Context, Drained) {}
	}
	return &Drainer{lot: lot, decoder: decoder, publisher: publisher, opts: opts, seen: make(map[string]sighting)}, nil
}

// Run drains what it finds until ctx ends, then returns nil. It survives failures of
// the lot and of the broker.
func (d *Drainer) Run(ctx context.Context) error {
	for {
		gates, err := d.lot.Intents(ctx)
		if err != nil && ctx.Err() == nil {
			d.opts.Drained(ctx, Drained{Err: fmt.Errorf("look for intents: %w", err)})
		}
		for _, g := range gates {
			if ctx.Err() == nil {
				d.drain(ctx, g)
			}
		}
		d.forget(gates)
		if !sleep(ctx, time.Duration(float64(d.opts.Poll)*(0.8+0.4*rand.Float64()))) {
			return nil
		}
	}
}

// forget drops the sightings of gates that have no intent any more.
func (d *Drainer) forget(gates []Gate) {
	current := make(map[string]bool, len(gates))
	for _, g := range gates {
		current[g.Key] = true
	}
	for key := range d.seen {
		if !current[key] {
			delete(d.seen, key)
		}
	}
}

// drain claims g, if nobody else has, and works on it until it is open or fails.
func (d *Drainer) drain(ctx context.Context, g Gate) {
	if !d.claimable(g) {
		return
	}
	w := &draining{d: d, gate: g}
	err := w.claim(ctx)
	if changedByOthers(err) {
		return // somebody was faster; the next look tells
	}
	if err == nil {
		err = w.run(ctx)
	}
	w.report.Key, w.report.Err = g.Key, err
	d.opts.Drained(ctx, w.report)
}

// claimable reports whether nobody holds g, or its holder has shown no beat for long
// enough.
func (d *Drainer) claimable(g Gate) bool {
	c := g.Claim
	if c == nil || c.Token == d.opts.Token {
		return true
	}
	s, known := d.seen[g.Key]
	if !known || s.token != c.Token || s.beat != c.Beat {
		d.seen[g.Key] = sighting{token: c.Token, beat: c.Beat, at: d.opts.Now()}
		return false
	}
	return d.opts.Now().Sub(s.at) >= d.opts.ClaimExpiry
}

// changedByOthers reports whether a change failed because the gate is not as it was.
func changedByOthers(err error) bool {
	return fault.Is(err, fault.PreconditionFailed) || fault.Is(err, fault.NotFound)
}
