package changefeed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// Processor distributes the feed ranges of one container over all hosts that
// share its lease store, and hands their changes to a handler. Its methods are
// safe for concurrent use; Run may be called again after it returned.
type Processor struct {
	env env

	running atomic.Pointer[run] // of the Run in progress, or nil
}

// New returns a processor. It does no I/O and starts nothing. The error lists
// everything that is wrong with the options; nil options are the defaults.
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
		opts.Host = name
	}
	return &Processor{env: env{
		feed: feed, store: leases, handler: handler, opts: opts, clock: opts.Clock, obs: opts.Observer,
	}}, nil
}

// Run processes until ctx ends, then drains, within Options.DrainTimeout: it tells
// others that it leaves, stops reading, waits for handlers, saves what is handled and
// passes the leases on. It returns nil after that, or why it could not begin: an error
// marked ErrPermanent, or *RefusedError. Errors after initialisation never end it.
func (p *Processor) Run(ctx context.Context) error {
	r := newRun(&p.env)
	if !p.running.CompareAndSwap(nil, r) {
		return ErrRunning
	}
	defer p.running.Store(nil)
	return r.run(ctx)
}

// Wake makes every owned range that waits for its next poll read at once. Call
// it after writing to the container in the same process. It does not block and
// may be called at any rate.
func (p *Processor) Wake() {
	for _, w := range p.workers() {
		w.wakeup.send()
	}
}

// workers are those of the Run in progress.
func (p *Processor) workers() []*worker {
	if r := p.running.Load(); r != nil {
		return r.workers.all()
	}
	return nil
}

// Lag reports on the ranges this host owns, without a request.
func (p *Processor) Lag() []RangeLag {
	var lags []RangeLag
	for _, w := range p.workers() {
		lags = append(lags, w.lagNow())
	}
	return lags
}

// Own calls do while this host owns the range that the partition key lies in, with one
// string value as the key. It is for work beside the feed that must not be done by two
// hosts at once, such as sending what a handler set aside.
//
// ctx ends when a handler's would: the lease is lost, its trust window passes or is in
// doubt, the drain deadline passes; or when the caller's ctx does. do must stop then.
// Whatever takes the range from this host (a drain, a hand-off, a split) or moves its
// position waits for do, for at most Options.DrainTimeout. Handlers go on meanwhile.
//
// Own returns do's error, and beside it the reason if the ownership ended before do did.
// It returns ErrNotOwned without a call if this host does not process the range now:
// another one does, nobody, or it is paused. The feed must be a Placer. Any number of
// calls may run at once, also for one key.
func (p *Processor) Own(ctx context.Context, key string, do func(ctx context.Context) error) error {
	placer, ok := p.env.feed.(Placer)
	if !ok {
		return fmt.Errorf("changefeed: the feed does not tell where a key lies (Placer): %w", errors.ErrUnsupported)
	}
	owned := p.workers()
	if len(owned) == 0 { // also before the feed has learnt how keys are placed
		return ErrNotOwned
	}
	place, err := placer.Place(key)
	if err != nil {
		return fmt.Errorf("changefeed: place of the key: %w", err)
	}
	var owner *worker
	for _, w := range owned {
		// Of a parent that came back and its children, the children are right.
		if w.Range.Has(place) && (owner == nil || owner.Range.Contains(w.Range)) {
			owner = w
		}
	}
	if owner == nil {
		return ErrNotOwned
	}
	return owner.callOwned(ctx, do)
}
