package changefeed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
)

// Processor distributes the feed ranges of one container over all hosts that share its
// lease store, and passes their changes to a handler. Its methods are safe for concurrent
// use. Run may be called again after it returned.
type Processor struct {
	env    env
	placer Placer // nil if the feed is none

	running atomic.Pointer[run] // the Run in progress, or nil
}

// New returns a processor. It does no I/O and starts no goroutine. The error lists every
// invalid option. Nil options are the defaults.
func New(feed Feed, leases LeaseStore, handler Handler, options *Options) (*Processor, error) {
	if feed == nil || leases == nil || handler == nil {
		return nil, errors.New("changefeed: feed, leases and handler are required")
	}
	opts, err := options.resolve(handler)
	if err != nil {
		return nil, fmt.Errorf("changefeed: %w", err)
	}
	if opts.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("changefeed: options: Host: %w", err)
		}
		opts.Host = opts.Siblings.name(fmt.Sprintf("%s-%08x", name, rand.Uint32()))
	}
	placer, _ := feed.(Placer)
	return &Processor{placer: placer, env: env{
		feed: timedFeed{feed, opts.ReadTimeout}, store: timed(leases, opts.Expiry), handler: handler, opts: opts, clock: opts.Clock, obs: opts.Observer, sibling: opts.Siblings.join(), turns: &turns{},
	}}, nil
}

// Run processes until ctx ends. Then it drains within Options.DrainTimeout: it announces to
// the other hosts that it leaves, stops reading, waits for handlers, stores the last
// checkpoints and releases the leases. It returns nil after a drain. If it cannot start, it
// returns an error marked ErrPermanent, or *RefusedError. Errors after initialization never
// end it.
func (p *Processor) Run(ctx context.Context) error {
	if p == nil || p.env.feed == nil {
		return fmt.Errorf("changefeed: the Processor is not made by New: %w", ErrPermanent)
	}
	r := newRun(&p.env)
	if !p.running.CompareAndSwap(nil, r) {
		return ErrRunning
	}
	defer p.running.Store(nil)
	defer p.env.opts.Siblings.note(p.env.sibling, nil)
	for {
		err := r.run(ctx)
		recreated, ok := errors.AsType[*recreatedError](err)
		if !ok {
			return err
		}
		notify(p.env.obs.Recreated, Recreated{From: r.source, To: recreated.to})
		r = newRun(&p.env)
		r.again, r.opts.Start = true, FromBeginning() // everything in the new container is new
		p.running.Store(r)
	}
}

// Wake ends the poll pause of every owned range, so that it is read at once. Call it after
// a write to the container in the same process. It does not block and may be called at any
// rate.
func (p *Processor) Wake() {
	for _, w := range p.workers() {
		w.wakeup.send()
	}
}

// workers returns the workers of the Run in progress.
func (p *Processor) workers() []*worker {
	if r := p.running.Load(); r != nil {
		return r.workers.all()
	}
	return nil
}

// Lag returns the lag of the ranges this host owns. It makes no request.
func (p *Processor) Lag() []RangeLag {
	var lags []RangeLag
	for _, w := range p.workers() {
		lags = append(lags, w.lagNow())
	}
	return lags
}

// Own calls do while this host owns the range that contains the partition key, which has
// one string value. Use it for work outside the feed that two hosts must not do at once,
// such as sending the parked events of a key.
//
// ctx ends when a handler's context would: the lease is lost, its trust window passes or is
// in doubt, or the drain deadline passes. It also ends with the caller's ctx. do must stop
// then. A drain, a hand-off, a split, and a change of the position wait for do, for at most
// Options.DrainTimeout. Handlers continue meanwhile.
//
// Own returns do's error, joined with ErrNotOwned and the reason if the ownership ended before
// do did. It returns ErrNotOwned without a call if this host does not process the range now, because
// another host or no host owns it, or because it is paused. The feed must be a Placer. Any
// number of calls may run at once, also for one key.
func (p *Processor) Own(ctx context.Context, key string, do func(ctx context.Context) error) error {
	if p.placer == nil {
		return fmt.Errorf("changefeed: the feed cannot place keys: it is no Placer: %w", errors.ErrUnsupported)
	}
	owned := p.workers()
	if len(owned) == 0 { // also true before the feed knows how keys are placed
		return ErrNotOwned
	}
	place, err := p.placer.Place(key)
	if err != nil {
		return fmt.Errorf("changefeed: place of the key: %w", err)
	}
	var owner *worker
	for _, w := range owned {
		// If a parent reappeared beside its children, the children are the right leases.
		if w.Range.Has(place) && (owner == nil || owner.Range.Contains(w.Range)) {
			owner = w
		}
	}
	if owner == nil {
		return ErrNotOwned
	}
	return owner.callOwned(ctx, do)
}
