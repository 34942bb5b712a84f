package changefeed

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"
)

// deliver hands a segment to the handler, in one call unless the lease came into
// doubt during it: then the lease is renewed and the segment handed over again.
func (w *worker) deliver(s segment, attempt int) error {
	for {
		if err := w.assure(); err != nil {
			return err
		}
		if err := w.call(s, attempt); !errors.Is(err, errDoubt) {
			return err
		}
	}
}

// assure returns nil if the lease can be trusted; a lease in doubt is renewed
// first.
func (w *worker) assure() error {
	for {
		switch {
		case w.own.fence.passed():
			return ErrFenced
		case w.ctx.Err() != nil:
			return context.Cause(w.ctx)
		case !w.own.fence.doubted():
			return nil
		}
		if err := w.own.renew(w.ctx); err != nil {
			return err
		}
	}
}

// call makes one handler call. A panic and a time-out become errors; errDoubt is
// among them if the handler was ended because the lease is in doubt.
func (w *worker) call(s segment, attempt int) error {
	ctx, end := context.WithCancelCause(w.ctx)
	defer end(nil)
	if limit := w.r.opts.HandlerTimeout; limit > 0 {
		timed, cancel := context.WithTimeoutCause(ctx, limit, ErrHandlerTimeout)
		defer cancel()
		ctx = timed
	}
	src := s.page.src
	batch := Batch{
		Lease: w.id, Token: w.token, Range: w.rng, Epoch: w.epoch, Items: s.items, Attempt: attempt,
		RequestCharge: src.RequestCharge, SessionToken: src.SessionToken, Continuation: src.Continuation,
		fence: w.own.fence,
	}
	w.r.obs.batchStarted(BatchStarted{Lease: w.id, Epoch: w.epoch, Items: len(s.items), Attempt: attempt})
	began, number := w.r.clock.Now(), w.r.beginCall()
	err := w.invoke(&fencedContext{Context: ctx, fence: w.own.fence, end: end}, &batch, s.page)
	took := w.r.clock.Now().Sub(began)
	w.r.timing.Handle.observe(took)
	if err == nil {
		w.r.succeeded(number)
		w.r.obs.batchHandled(BatchHandled{Lease: w.id, Range: w.rng, Items: len(s.items), Attempt: attempt, Took: took})
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrHandlerTimeout) || errors.Is(cause, errDoubt) {
		err = errors.Join(cause, err)
	}
	w.r.obs.batchFailed(BatchFailed{Lease: w.id, Range: w.rng, Items: len(s.items), Attempt: attempt, Took: took, Err: err})
	return err
}

// invoke calls the handler and turns a panic into an error.
func (w *worker) invoke(ctx context.Context, batch *Batch, p *page) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if m, ok := w.r.handler.(*manualHandler); ok {
		return m.handle(ctx, batch, &pageCheckpointer{w: w, page: p})
	}
	return w.r.handler.Handle(ctx, batch)
}

// pageCheckpointer saves the position behind one page.
type pageCheckpointer struct {
	w    *worker
	page *page
}

func (c *pageCheckpointer) Checkpoint(ctx context.Context) error {
	c.w.manual.Lock()
	c.w.manual.unsaved = 0
	c.w.manual.Unlock()
	lsn, changed := lastOf(c.page.items)
	c.w.own.advance(c.page.src.Continuation, len(c.page.items), lsn, changed)
	return c.w.own.flush(ctx)
}

// progress moves the checkpoint behind finished pages. Called with flow.mu.
func (w *worker) progress(done []*page) {
	if _, manual := w.r.handler.(*manualHandler); manual {
		w.progressManual(done)
		return
	}
	items, lsn, changed := 0, int64(0), int64(0)
	for _, p := range done {
		items += len(p.items)
		if pageLSN, pageChanged := lastOf(p.items); pageLSN > lsn {
			lsn, changed = pageLSN, pageChanged
		}
	}
	w.own.advance(done[len(done)-1].src.Continuation, items, lsn, changed)
}

// progressManual moves the checkpoint over pages without items only, and only if
// no handled page waits for its own checkpoint.
func (w *worker) progressManual(done []*page) {
	w.manual.Lock()
	defer w.manual.Unlock()
	for _, p := range done {
		switch {
		case len(p.items) > 0:
			if w.own.snapshot().Continuation != p.src.Continuation {
				w.manual.unsaved++
			}
		case w.manual.unsaved == 0:
			w.own.advance(p.src.Continuation, 0, 0, 0)
		}
	}
}

// lastOf is the highest LSN among items and its time of change. Items may be
// sorted by lane.
func lastOf(items []Item) (lsn, changed int64) {
	for i := range items {
		if items[i].LSN >= lsn {
			lsn, changed = items[i].LSN, items[i].Timestamp
		}
	}
	return lsn, changed
}

// retryBackoff is a fresh backoff for a delivery.
func (w *worker) retryBackoff() backoff {
	return backoff{min: w.r.opts.RetryMin, max: w.r.opts.RetryMax}
}

// attempts are the failure counts in the lease; nil almost always.
func (w *worker) attempts() []DocumentAttempts {
	w.own.mu.Lock()
	defer w.own.mu.Unlock()
	if len(w.own.lease.Attempts) == 0 {
		return nil
	}
	return slices.Clone(w.own.lease.Attempts)
}

// countAttempt adds a failure of the document and reports whether it was the
// last one allowed.
func (w *worker) countAttempt(item *Item) (exhausted bool) {
	name := documentName(item)
	w.own.change(func(l *Lease) urgency {
		var n int
		l.Attempts, n = addAttempt(slices.Clone(l.Attempts), name)
		exhausted = w.r.opts.MaxAttempts > 0 && n >= w.r.opts.MaxAttempts
		return now
	})
	return exhausted
}

// firstCondemned is the index of the first item whose attempts are used up, -1 if
// there is none.
func (w *worker) firstCondemned(items []Item) int {
	known := w.attempts()
	if len(known) == 0 || w.r.opts.MaxAttempts <= 0 {
		return -1
	}
	return slices.IndexFunc(items, func(i Item) bool {
		return countOf(known, documentName(&i)) >= w.r.opts.MaxAttempts
	})
}

// bury hands a document to the dead-letter sink.
func (w *worker) bury(letter DeadLetter) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if err := w.assure(); err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(w.ctx)
	defer end(nil)
	return w.r.opts.DeadLetter(&fencedContext{Context: ctx, fence: w.own.fence, end: end}, letter)
}

// trouble is what makes a range unhealthy, for the lease and the observer.
type trouble struct {
	lanes    map[*lane]bool // that fail right now; nil is the reader
	since    time.Time
	failures int
	stuck    bool // the observer was told
}

// failing notes a failed delivery, or with no lane a failed read.
func (w *worker) failing(l *lane, err error) {
	at := w.r.clock.Now()
	w.mu.Lock()
	t := &w.trouble
	if t.lanes == nil {
		t.lanes = map[*lane]bool{}
	}
	first := len(t.lanes) == 0
	t.lanes[l] = true
	if first {
		t.since, t.failures, t.stuck = at, 0, false
	}
	t.failures++
	tell := !t.stuck && at.Sub(t.since) >= w.r.opts.StuckAfter
	t.stuck = t.stuck || tell
	failures, since := t.failures, t.since
	w.mu.Unlock()
	wall := w.r.opts.Now().Add(-at.Sub(since))
	w.own.change(func(lease *Lease) urgency {
		if lease.Health != Stopped {
			lease.Health = Retrying
		}
		lease.Failures, lease.Error, lease.Failing = failures, clip(err.Error(), maxErrorText), wall
		if first || tell {
			return soon
		}
		return later
	})
	if tell {
		w.r.obs.rangeStuck(RangeStuck{Lease: w.id, Range: w.rng, Failures: failures, Since: wall, Err: err})
	}
}

// recovered notes that a lane, or without one the reader, has no failing work any
// more.
func (w *worker) recovered(l *lane) {
	w.mu.Lock()
	was := w.trouble.lanes[l]
	if !was || (l != nil && len(l.held) > 0) {
		w.mu.Unlock()
		return
	}
	delete(w.trouble.lanes, l)
	over := len(w.trouble.lanes) == 0
	w.mu.Unlock()
	if over {
		w.own.change(clearHealth)
		w.r.obs.rangeRecovered(RangeRecovered{Lease: w.id, Range: w.rng})
	}
}

func clearHealth(l *Lease) urgency {
	if l.Health == Healthy {
		return unchanged
	}
	l.Health, l.Failures, l.Error, l.Failing = Healthy, 0, "", time.Time{}
	return soon
}

// stopRange applies the policy stop.
func (w *worker) stopRange(err error) {
	w.mu.Lock()
	f := w.flow
	w.mu.Unlock()
	if f != nil {
		f.halt()
	}
	w.own.change(func(l *Lease) urgency {
		l.Health, l.Error = Stopped, clip(err.Error(), maxErrorText)
		return now
	})
}
