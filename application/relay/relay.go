package relay

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Relay publishes the events of change feed pages. It is safe for concurrent use.
type Relay struct {
	decoder   Decoder
	publisher Publisher
	opts      Options
	pages     sync.Pool // of *page
	judge     judge
	memory    memory
}

// Options are the choices of New. The zero value is usable.
type Options struct {
	// Parked is where refused events and their followers are parked. Default: none; then
	// Park fails and a refused event stays in the way of its key.
	Parked ParkedStore
	// Now is the clock of pauses and of what is stored with parked events. Default
	// time.Now.
	Now func() time.Time
	// Observer is told what happens. Default: nobody.
	Observer Observer
}

// New returns a relay. decoder and publisher are required.
func New(decoder Decoder, publisher Publisher, opts *Options) (*Relay, error) {
	if decoder == nil || publisher == nil {
		return nil, errors.New("new relay: decoder and publisher are required")
	}
	r := &Relay{decoder: decoder, publisher: publisher}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Now == nil {
		r.opts.Now = time.Now //nolint:forbidigo // the default of an option
	}
	r.pages.New = func() any { return new(page) }
	r.judge = judge{now: r.opts.Now, probe: make(chan struct{}, 1), troubled: make(map[string]trouble)}
	r.memory = memory{leases: make(map[string]*ownership), parked: make(map[string]struct{})}
	return r, nil
}

// Handle publishes the events among changes, which are in the order of the feed. It
// returns those that were neither accepted by the broker nor parked because their key is,
// in the order of changes, and why; the caller may move its checkpoint past all others.
//
// The caller hands the failed ones over again, later: an Outage or Blocked one not before
// its NotBefore, a Refused one until it gives up and calls Park. Events that were accepted
// and are handed over again are sent again, with the same message ids, which the broker's
// duplicate detection drops.
//
// ctx must end before the caller's claim to the feed range does: nothing is sent after
// that. No other call may carry the same key at the same time. The documents must not
// be changed until Handle returns.
func (r *Relay) Handle(ctx context.Context, o Ownership, changes []Change) []Failure {
	p := r.pages.Get().(*page)
	defer func() {
		p.reset()
		r.pages.Put(p)
	}()
	p.read(r.decoder, changes)
	in, first, err := r.enter(ctx, o)
	r.findMissing(ctx, o, in, p)
	if err != nil {
		p.failAll(err)
	} else {
		r.parkFollowers(ctx, p)
		r.publish(ctx, p)
	}
	r.memory.note(p)
	tell(ctx, r.opts.Observer.Handled, Summary{Resent: p.resent, First: first, Oldest: p.oldest()})
	return p.failures()
}
