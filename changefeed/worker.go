package changefeed

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// worker processes one owned lease. Its goroutines are run itself, the keeper of the lease
// record, the reader, and one per lane that has work. run ends when all others have ended.
type worker struct {
	*delivery
	workers *workers
	cancel  context.CancelCauseFunc // ends the delivery's context
	calls   ownCalls
	kick    signal    // check the stop order and the record's request
	began   time.Time // of the ownership

	mu    sync.Mutex
	order stopOrder
	flow  *flow // of the current session, nil between sessions
}

// stopOrder tells a worker to stop and names the reason.
type stopOrder struct {
	given   bool // set by stop
	handoff hostKey
	replace bool // narrower leases exist: split into rest
	rest    []FeedRange
	reason  string
}

// ending is the reason for the end of a session.
type ending int

const (
	notEnded     ending = iota // the session continues
	endedLost                  // another host owns the lease, or the fence passed
	endedStopped               // the worker was stopped
	endedSplit                 // several physical ranges serve the range
	endedRestart               // start a new session from the checkpoint
)

// run processes until it is stopped or the lease is lost, and then reports the end of the
// ownership. ctx is only a parent for values: it may have ended.
func (w *worker) run(ctx context.Context) {
	keepCtx, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() { w.keeper.run(keepCtx) }) // w.ctx ends if the keeper ends the ownership
	var why ending
	var split *SplitError
	for why = endedRestart; why == endedRestart; {
		why, split = w.session() //nolint:contextcheck // reading lives as long as the lease, not as long as Run's context
	}
	stopKeeping()
	keeping.Wait()
	switch cause := context.Cause(w.ctx); { //nolint:contextcheck // the lease's context
	case errors.Is(cause, ErrDraining): // the deadline of a drain, a pause or a rewind came first
		why = endedStopped
	case cause != nil:
		why = endedLost
	}
	switch why {
	case endedStopped:
		if order, _ := w.current(); order.replace {
			w.replaceBy(ctx, order.rest)
		} else {
			w.release(ctx)
		}
	case endedSplit:
		w.retire(ctx, split)
	case endedLost, endedRestart, notEnded:
		w.reportLost(context.Cause(w.ctx)) //nolint:contextcheck // the lease's context, which ended
	}
	w.keeper.fence.revoke(ErrLeaseLost) // and with it the delivery's context
}

// session reads and delivers from the checkpoint until an ending.
func (w *worker) session() (ending, *SplitError) {
	if why := w.carryOutRequests(); why != notEnded {
		return why, nil
	}
	f := newFlow(w.delivery)
	w.keeper.follow(f)
	w.setFlow(f)
	w.inheritTrouble()
	readCtx, stopReading := context.WithCancel(w.ctx)
	read := make(chan *SplitError, 1)
	var reading sync.WaitGroup
	reading.Go(func() { read <- w.read(readCtx, f) })
	w.calls.accept(true)
	why, split := notEnded, (*SplitError)(nil)
	for why == notEnded {
		select {
		case split = <-read: // nil: the context has ended
			why = endedLost
			if split != nil {
				why = endedSplit
			}
		case <-f.reread:
			why = endedRestart
		case <-w.kick:
			why = w.carryOutRequests()
		}
	}
	stopReading()
	reading.Wait()
	w.finishFlow(f)
	w.keeper.follow(nil)
	w.setFlow(nil)
	return why, split
}

// finishFlow waits for handlers and calls of Processor.Own, at most for the drain timeout.
func (w *worker) finishFlow(f *flow) {
	stop := w.clock.AfterFunc(max(0, w.opts.DrainTimeout), func() { w.cancel(ErrDraining) })
	f.close()
	w.calls.accept(false)
	w.calls.running.Wait()
	stop()
}

// carryOutRequests carries out stop orders and an operator's requests, and returns the
// ending they cause. Between sessions it waits for the end of a pause, holding the lease and
// measuring the lag.
func (w *worker) carryOutRequests() ending {
	stopMeasuring := func() {}
	defer func() { stopMeasuring() }()
	for measured := false; ; {
		order, f := w.current()
		request := w.keeper.snapshot().Request
		running := f != nil
		paused := request.Paused || w.workers.paused.Load()
		moved := request.Rewind != nil || request.Retry
		switch {
		case order.given:
			return endedStopped
		case request.Release, request.History != "":
			w.stop(stopOrder{reason: "operator"})
			return endedStopped
		case running && (moved || paused):
			return endedRestart // deliver nothing while the position changes
		case moved:
			if request.Rewind != nil {
				w.forgetLag()
			}
			w.keeper.change(applyRequest)
			stopMeasuring()
			measured = false
		}
		if !paused {
			return notEnded
		}
		if !measured {
			measured, stopMeasuring = true, w.measureInPause()
		}
		select {
		case <-w.ctx.Done():
			return endedLost
		case <-w.kick:
		}
	}
}

// applyRequest applies an operator's rewind or retry to the record.
func applyRequest(l *Lease) urgency {
	if to := l.Request.Rewind; to != nil {
		l.Backlog = true
		l.Continuation, l.Since, l.LSN, l.ChangeTime = to.Continuation, to.Since, 0, 0
		l.Delivered, l.Reached, l.Ahead = 0, 0, Ahead{}
		l.History = cmp.Or(l.Request.History, l.History)
	}
	l.Term, l.Lost = "", 0
	l.Ahead.Held = slices.Clone(l.Ahead.Held)
	for i := range l.Ahead.Held {
		l.Ahead.Held[i].Refusals = 0
	}
	l.Health, l.Error, l.Failures, l.Failing = Healthy, "", 0, time.Time{}
	l.UnreadFor = 0
	l.Request.Rewind, l.Request.History, l.Request.Retry = nil, "", false
	return now
}

// stop orders the worker to stop. Only the first order counts.
func (w *worker) stop(order stopOrder) {
	order.given = true
	w.mu.Lock()
	if !w.order.given {
		w.order = order
	}
	w.mu.Unlock()
	w.kick.send()
}

// current returns the stop order, and the flow if a session is running.
func (w *worker) current() (stopOrder, *flow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.order, w.flow
}

func (w *worker) setFlow(f *flow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flow = f
}

func (w *worker) inFlight() bool {
	_, f := w.current()
	return f != nil && f.window.busy()
}

func (w *worker) lagNow() RangeLag {
	_, f := w.current()
	lag := w.lagIn(f)
	lag.Paused = lag.Request.Paused || w.workers.paused.Load()
	return lag
}
