package changefeed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Processor distributes the feed ranges of one container over all hosts that
// share its lease store, and hands their changes to a handler. Its methods are
// safe for concurrent use; Run may be called again after it returned.
type Processor struct {
	feed    Feed
	store   LeaseStore
	handler Handler
	opts    Options
	timing  Timing
	counts  RequestCounts

	mu      sync.Mutex
	current *run // of the Run in progress, or nil
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
	p := &Processor{feed: feed, handler: handler, opts: opts}
	p.store = &countingStore{LeaseStore: leases, counts: &p.counts}
	p.feed = &countingFeed{Feed: feed, counts: &p.counts}
	return p, nil
}

// Run processes until ctx ends, then drains, within Options.DrainTimeout: it tells
// others that it leaves, stops reading, waits for handlers, saves what is handled and
// passes the leases on. It returns nil after that, or why it could not begin: an error
// marked ErrPermanent, or *RefusedError. Errors after initialisation never end it.
func (p *Processor) Run(ctx context.Context) error {
	r, err := p.begin()
	if err != nil {
		return err
	}
	defer p.end()
	return r.run(ctx)
}

func (p *Processor) begin() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return nil, ErrRunning
	}
	p.current = newRun(p)
	return p.current, nil
}

func (p *Processor) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
}

// Wake makes every owned range that waits for its next poll read at once. Call
// it after writing to the container in the same process. It does not block and
// may be called at any rate.
func (p *Processor) Wake() {
	if r := p.running(); r != nil {
		for _, w := range r.owned() {
			w.wake()
		}
	}
}

// Lag reports on the ranges this host owns, without a request.
func (p *Processor) Lag() []RangeLag {
	var lags []RangeLag
	if r := p.running(); r != nil {
		for _, w := range r.owned() {
			lags = append(lags, w.lagNow())
		}
	}
	return lags
}

// Timing holds the durations measured since New.
func (p *Processor) Timing() *Timing { return &p.timing }

// Requests counts what the processor asked of its feed and lease store since
// New.
func (p *Processor) Requests() RequestSnapshot { return p.counts.snapshot() }

func (p *Processor) running() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// run is one call of Run. Its goroutines are the cycle (run itself) and, for
// each owned lease, those of a worker.
type run struct {
	*Processor
	clock       Clock
	obs         observers
	ids         recordIDs
	incarnation string
	self        hostKey
	paused      atomic.Bool
	calls       atomic.Int64  // handler calls begun
	proof       atomic.Int64  // number of the latest begun of those that returned nil
	suspects    atomic.Int64  // keys held and batches failing in place
	hurried     chan struct{} // capacity 1: look at the leases now
	raced       atomic.Bool   // a lease wanted was taken by another: look again soon
	wait        sync.WaitGroup

	mu       sync.Mutex
	workers  map[string]*worker // by lease id
	drainEnd time.Time          // set when the drain begins

	cycleState
}

func newRun(p *Processor) *run {
	r := &run{
		Processor: p, clock: p.opts.Clock, obs: observers{p.opts.Observer}, incarnation: newIncarnation(),
		hurried: make(chan struct{}, 1), workers: map[string]*worker{},
	}
	r.self = newHostKey(p.opts.Host, r.incarnation)
	return r
}

func newIncarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// owned lists the workers of this moment.
func (r *run) owned() []*worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*worker, 0, len(r.workers))
	for _, w := range r.workers {
		all = append(all, w)
	}
	return all
}

// watch is this host's clocks.
func (r *run) watch() watch { return watch{clock: r.clock, wall: r.opts.Now} }

func (r *run) worker(lease string) *worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[lease]
}

// wakeWorker makes a lease's worker look at its record's request.
func (r *run) wakeWorker(lease string) {
	if w := r.worker(lease); w != nil {
		w.nudge()
	}
}

// start runs a worker for a lease whose acquisition began at began.
func (r *run) start(ctx context.Context, lease Lease, began glance) {
	fenced, f := newFence(ctx, r.watch(), began, r.opts.Expiry-r.opts.Margin)
	w := &worker{
		r: r, id: lease.ID, rng: lease.Range, token: lease.Token, epoch: lease.Epoch,
		wakeup: make(chan struct{}, 1), kick: make(chan struct{}, 1),
	}
	w.ctx, w.cancel = context.WithCancelCause(fenced)
	w.own = newOwned(r, lease, f, began.own)
	r.mu.Lock()
	r.workers[lease.ID] = w
	r.mu.Unlock()
	r.wait.Go(func() {
		w.run(ctx)
		r.mu.Lock()
		delete(r.workers, lease.ID)
		r.mu.Unlock()
		r.hurry()
	})
}

// hurry makes the next cycle begin now.
func (r *run) hurry() {
	select {
	case r.hurried <- struct{}{}:
	default:
	}
}

// drainLeft is the time handlers still have.
func (r *run) drainLeft() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drainEnd.Sub(r.clock.Now())
}

// isOutage classifies a handler's error.
func (r *run) isOutage(err error) bool {
	var marked *outageError
	return errors.As(err, &marked) || r.opts.IsOutage(err)
}

// beginCall numbers a handler call of this process; succeeded is told the number if
// the call returned nil.
func (r *run) beginCall() int64 { return r.calls.Add(1) }

func (r *run) succeeded(call int64) {
	for {
		known := r.proof.Load()
		if call <= known || r.proof.CompareAndSwap(known, call) {
			return
		}
	}
}

// moment is a point in the sequence of handler calls.
type moment int64

func (r *run) moment() moment { return moment(r.calls.Load()) }

// succeededSince reports whether a call returned nil that began after m: then
// whatever the handler depends on was up after m, and a document that fails is itself
// to blame. A call that began before proves nothing, however late it ends.
func (r *run) succeededSince(m moment) bool { return moment(r.proof.Load()) > m }
