package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Relay publishes the events of change feed pages. It is safe for concurrent use.
type Relay struct {
	decoder   Decoder
	publisher Publisher
	opts      Options
	pages     sync.Pool     // of *page
	accepted  atomic.Uint64 // messages that the broker accepted
	outage    outage
	suspects  suspects
	refusals  refusals
	gates     gates
	guard     guard
	tenures   tenures
}

// Options are the choices of New. The zero value is usable.
type Options struct {
	// Lot is where refused events and their followers are parked. Default: none; then
	// Park fails and a refused event stays in the way of its key.
	Lot Lot
	// Patience is how long Handle tries again by itself during an outage before it
	// returns. Default 30 s; negative: it never tries again.
	Patience time.Duration
	// PauseMin and PauseMax bound the pauses in between. Defaults 100 ms and 5 s.
	PauseMin, PauseMax time.Duration
	// SuspectAfter is how often an Ambiguous failure may hit a key while others pass
	// before it is taken for the message's own. Default 5.
	SuspectAfter int
	// BlockAfter is how many keys an Ambiguous refusal may hit, with no message accepted
	// in between, before it is taken for the fault of the broker's set-up. So many keys
	// less one may get parked for such a fault. Default 3; negative: it never is.
	BlockAfter int
	// Sequences is how many keys' last sequences are remembered, to find events that
	// expired before they were sent. Default 100,000; negative: none is looked for.
	Sequences int
	// Now is the clock of what is stored with parked events. Required with Lot.
	Now func() time.Time
	// Hooks tell what happens. Default: nobody.
	Hooks Hooks
}

// New returns a relay. decoder and publisher are required.
func New(decoder Decoder, publisher Publisher, opts *Options) (*Relay, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	var errs []error
	if decoder == nil {
		errs = append(errs, errors.New("decoder is nil"))
	}
	if publisher == nil {
		errs = append(errs, errors.New("publisher is nil"))
	}
	if o.Lot != nil && o.Now == nil {
		errs = append(errs, errors.New("option Lot needs option Now"))
	}
	o.Patience = cmp.Or(o.Patience, 30*time.Second)
	o.PauseMin = cmp.Or(o.PauseMin, 100*time.Millisecond)
	o.PauseMax = cmp.Or(o.PauseMax, max(5*time.Second, o.PauseMin))
	o.SuspectAfter = cmp.Or(o.SuspectAfter, 5)
	o.BlockAfter = cmp.Or(o.BlockAfter, 3)
	o.Sequences = cmp.Or(o.Sequences, 100_000)
	if o.PauseMin < 0 || o.PauseMax < o.PauseMin || o.SuspectAfter < 0 {
		errs = append(errs, errors.New("options PauseMin, PauseMax and SuspectAfter must be positive, PauseMax not below PauseMin"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("new relay: %w", errors.Join(errs...))
	}
	r := &Relay{decoder: decoder, publisher: publisher, opts: o}
	r.pages.New = func() any { return new(page) }
	r.guard.limit = o.Sequences
	return r, nil
}

// Tenure is one ownership of a feed range. The zero Tenure stands for one that never
// changes.
type Tenure struct {
	Lease string // names the range
	Epoch int64  // rises with every change of the owner
	// Resumed says that the range is read on from a checkpoint. Events that are missing
	// behind a checkpoint are lost; before the first one they may have been sent long ago.
	Resumed bool
}

// tenures remembers the tenure of each range and numbers them.
type tenures struct {
	mu      sync.Mutex // guards what follows
	byLease map[string]numbered
	last    int64
}

// numbered is the tenure of a range.
type numbered struct{ epoch, number int64 }

// enter notes t. It returns the number of t, which no other tenure has, and whether t is
// new.
func (t *tenures) enter(now Tenure) (number int64, entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, known := t.byLease[now.Lease]; known && n.epoch == now.Epoch {
		return n.number, false
	}
	if t.byLease == nil {
		t.byLease = make(map[string]numbered)
	}
	t.last++
	t.byLease[now.Lease] = numbered{now.Epoch, t.last}
	return t.last, true
}

// Handle is HandleOwned with the zero Tenure.
func (r *Relay) Handle(ctx context.Context, changes []Change) error {
	return r.HandleOwned(ctx, Tenure{}, changes)
}

// HandleOwned publishes the events among changes, which are in the order of the feed.
// It returns nil once each of them has been accepted by the broker, or parked because
// its key is; the caller may then move its checkpoint past changes.
//
// Otherwise it returns a *BatchError that names the events that were neither. Handling
// the same changes again sends those that were accepted again with the same message
// ids, which the broker's duplicate detection drops. During an outage HandleOwned first
// tries again by itself, for Options.Patience, and only what is left.
//
// ctx must end before the caller's claim to the feed range does: nothing is sent after
// that. No other call may carry the same key at the same time. The documents must not
// be changed until HandleOwned returns.
func (r *Relay) HandleOwned(ctx context.Context, t Tenure, changes []Change) error {
	p := r.pages.Get().(*page)
	defer func() {
		p.reset()
		r.pages.Put(p)
	}()
	p.read(r.decoder, changes)
	tenure, entered := r.tenures.enter(t)
	p.first = entered
	r.watch(ctx, t, tenure, p)
	if err := r.adopt(ctx, t); err != nil {
		return r.report(ctx, p, all(p, err))
	}
	r.parkClosed(ctx, p)
	r.publish(ctx, p)
	return r.report(ctx, p, p.failures())
}

// report tells the hooks how the page ended and turns failures into an error.
func (r *Relay) report(ctx context.Context, p *page, failures []Failure) error {
	if hook := r.opts.Hooks.Handled; hook != nil {
		s := Summary{Changes: len(p.changes), Skipped: p.skipped, Keys: len(p.keys), Failed: len(failures), Resent: p.resent, First: p.first}
		for i := range p.events {
			if at := p.changes[p.events[i].Index].Timestamp; s.Oldest.IsZero() || at.Before(s.Oldest) {
				s.Oldest = at
			}
		}
		for i := range p.keys {
			if k := &p.keys[i]; k.parked {
				s.Parked += len(k.messages)
			} else {
				s.Accepted += k.sent
			}
		}
		hook(ctx, s)
	}
	if len(failures) > 0 {
		return &BatchError{Failures: failures}
	}
	return nil
}

// all lists every event of the page as failed for the same reason.
func all(p *page, err error) []Failure {
	failures := make([]Failure, 0, len(p.events)+len(p.keyless))
	for _, f := range p.keyless {
		failures = append(failures, Failure{Index: f.Index, ID: f.ID, Err: err})
	}
	for i := range p.events {
		m := &p.events[i]
		failures = append(failures, Failure{Index: m.Index, ID: m.ID, Key: m.Key, Err: err})
	}
	return failures
}
