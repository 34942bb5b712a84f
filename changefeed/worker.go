package changefeed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// worker processes one owned lease. Its goroutines are run itself, the keeper of
// the lease record, the reader, and one per lane that has work; run ends when
// all others have.
type worker struct {
	r     *run
	id    string
	rng   FeedRange
	token string
	epoch int64
	own   *owned

	// ctx is the context handlers get: it ends when the fence passes, the lease
	// is lost or a drain runs out of time.
	ctx    context.Context //nolint:containedctx // one lifetime, shared by goroutines that start at different times
	cancel context.CancelCauseFunc

	wakeup chan struct{} // capacity 1: poll now
	kick   chan struct{} // capacity 1: look at asked and at the record's request

	mu      sync.Mutex
	asked   ask
	flow    *flow // of the current session, nil between sessions
	trouble trouble
	lag     lagState

	manual struct { // of a manual handler, used by the lane and by progress
		sync.Mutex
		unsaved int // handled pages behind the last checkpoint
	}
}

// ask is what the processor wants of a worker.
type ask struct {
	stop    bool
	drain   bool // stop because the processor drains: mind its deadline
	handoff hostKey
	replace bool // stop because narrower leases exist: split into rest
	rest    []FeedRange
	reason  string
}

// verdict is why a session ended.
type verdict int

const (
	endedLost  verdict = iota // the lease is another's or the fence passed
	endedAsked                // stop was asked for
	endedSplit                // the range is served by several physical ranges
	endedAgain                // start a new session from the checkpoint
)

// run processes until it is asked to stop or the lease is lost, and says what
// became of the lease. ctx is only a parent for values: it may have ended.
func (w *worker) run(ctx context.Context) {
	keepCtx, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	defer stopKeeping()
	kept := make(chan struct{}) // closed by the keeper's goroutine
	go func() {
		defer close(kept)
		if err := w.own.keep(keepCtx); err != nil {
			w.cancel(err)
		}
	}()
	var why verdict
	var split *SplitError
	for why = endedAgain; why == endedAgain; {
		why, split = w.session() //nolint:contextcheck // reading lives as long as the lease, not as long as Run's context
	}
	stopKeeping()
	<-kept
	switch why {
	case endedAsked:
		w.mu.Lock()
		asked := w.asked
		w.mu.Unlock()
		if asked.replace {
			w.replaceBy(ctx, asked.rest)
		} else {
			w.release(ctx)
		}
	case endedSplit:
		w.retire(ctx, split)
	case endedLost, endedAgain:
		w.lost(ctx)
	}
	w.cancel(ErrLeaseLost)
	w.own.fence.revoke(ErrLeaseLost)
}

// session reads and delivers from the checkpoint until something ends it.
func (w *worker) session() (verdict, *SplitError) {
	if why, ok := w.obey(); ok {
		return why, nil
	}
	f := newFlow(w)
	w.mu.Lock()
	w.flow, w.trouble = f, trouble{}
	w.mu.Unlock()
	w.own.change(clearHealth) // it fails again, or it does not
	readCtx, stopReading := context.WithCancel(w.ctx)
	defer stopReading()
	read := make(chan error, 1)
	go func() { read <- w.read(readCtx, f) }()
	running := true
	why, split := endedLost, (*SplitError)(nil)
	for waiting := true; waiting; {
		select {
		case err := <-read:
			running = false
			if errors.As(err, &split) {
				why = endedSplit
			}
			waiting = false
		case <-w.kick:
			if verdict, ok := w.obey(); ok {
				why, waiting = verdict, false
			}
		case <-w.ctx.Done():
			waiting = false
		}
	}
	stopReading()
	if running {
		<-read //nolint:errcheck // it was told to end
	}
	w.finishFlow(f)
	w.mu.Lock()
	w.flow = nil
	w.mu.Unlock()
	if w.ctx.Err() != nil && !errors.Is(context.Cause(w.ctx), ErrDraining) {
		return endedLost, nil
	}
	return why, split
}

// finishFlow waits for handlers, not longer than the drain timeout.
func (w *worker) finishFlow(f *flow) {
	limit := w.r.opts.DrainTimeout
	w.mu.Lock()
	if w.asked.drain {
		limit = min(limit, w.r.drainLeft())
	}
	w.mu.Unlock()
	stop := w.r.clock.AfterFunc(max(0, limit), func() { w.cancel(ErrDraining) })
	f.close()
	stop()
}

// obey carries out what the processor or an operator asks. It reports how the
// session ends, if it does.
func (w *worker) obey() (verdict, bool) {
	w.mu.Lock()
	asked := w.asked
	running := w.flow != nil
	w.mu.Unlock()
	if asked.stop {
		return endedAsked, true
	}
	request := w.own.snapshot().Request
	switch {
	case request.Release:
		w.own.change(func(l *Lease) urgency { l.Request.Release = false; return now })
		w.ask(ask{stop: true, reason: "operator"})
		return endedAsked, true
	case request.Rewind != nil || request.Retry:
		if running {
			return endedAgain, true // deliver nothing while the position changes
		}
		w.own.change(applyRequest)
	}
	if paused := request.Paused || w.r.paused.Load(); paused {
		if running {
			return endedAgain, true
		}
		return w.holdStill()
	}
	return 0, false
}

// applyRequest carries out an operator's rewind or retry on the record.
func applyRequest(l *Lease) urgency {
	if to := l.Request.Rewind; to != nil {
		l.Continuation, l.Since, l.LSN, l.ChangeTime = to.Continuation, to.Since, 0, 0
	}
	l.Attempts, l.Health, l.Error, l.Failures, l.Failing = nil, Healthy, "", 0, time.Time{}
	l.Request.Rewind, l.Request.Retry = nil, false
	return now
}

// holdStill waits, holding the lease, until the pause is over.
func (w *worker) holdStill() (verdict, bool) {
	for {
		select {
		case <-w.ctx.Done():
			return endedLost, true
		case <-w.kick:
		}
		w.mu.Lock()
		stop := w.asked.stop
		w.mu.Unlock()
		request := w.own.snapshot().Request
		if stop || request.Release || (!request.Paused && !w.r.paused.Load()) {
			return w.obey()
		}
		if request.Rewind != nil || request.Retry {
			w.own.change(applyRequest)
		}
	}
}

// ask tells the worker what is wanted of it; a stop cannot be taken back, but a
// drain overrules a hand-off.
func (w *worker) ask(a ask) {
	w.mu.Lock()
	if !w.asked.stop || a.drain {
		w.asked = a
	}
	w.mu.Unlock()
	w.nudge()
}

func (w *worker) nudge() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// wake cuts the current poll pause short.
func (w *worker) wake() {
	select {
	case w.wakeup <- struct{}{}:
	default:
	}
}

// inHand reports whether pages are being handled.
func (w *worker) inHand() bool {
	w.mu.Lock()
	f := w.flow
	w.mu.Unlock()
	return f != nil && f.busy()
}

// release gives the lease up, with the checkpoint, in one write.
func (w *worker) release(ctx context.Context) {
	w.mu.Lock()
	asked := w.asked
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.own.untilFence())
	defer cancel()
	err := w.own.finish(ctx, func(l *Lease) {
		l.disown()
		l.Handoff = asked.handoff
	})
	if err != nil {
		w.r.obs.leaseLost(LeaseLost{Lease: w.id, Range: w.rng, Epoch: w.epoch, Err: err})
		return
	}
	w.r.obs.leaseReleased(LeaseReleased{
		Lease: w.id, Range: w.rng, Epoch: w.epoch, To: asked.handoff.name(), Reason: asked.reason,
	})
}

// lost ends a worker whose lease is gone. If nobody has taken it yet, a release
// spares the next owner the wait; the ETag keeps that harmless.
func (w *worker) lost(ctx context.Context) {
	cause := context.Cause(w.ctx) //nolint:contextcheck // the lease's context, which ended; ctx is Run's
	w.r.obs.leaseLost(LeaseLost{Lease: w.id, Range: w.rng, Epoch: w.epoch, Err: cause})
	if errors.Is(cause, ErrLeaseLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.r.opts.Expiry/4)
	defer cancel()
	lease := w.own.snapshot()
	lease.disown()
	lease.Timestamp = w.r.opts.Now()
	if _, err := w.r.store.Replace(ctx, lease.encode()); err != nil {
		w.r.obs.leaseError(LeaseError{Lease: w.id, Op: "release", Err: err})
	}
}
