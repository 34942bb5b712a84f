package changefeed

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// delivery passes the changes of one owned lease to the handler. It lives as long as the
// ownership; each of its flows lives as long as a session.
type delivery struct {
	*env
	LeaseRef
	token     string
	container string // Source.Container of the run
	keeper    *keeper
	handled   *atomic.Int64 // documents handled by this process

	// ctx is the handlers' context. It ends when the fence passes, the lease is lost, or a
	// drain runs out of time.
	ctx    context.Context //nolint:containedctx // one lifetime, shared by goroutines that start at different times
	wakeup signal          // poll now
	// resumed is Batch.Resumed of the next page. Only the reader uses it. Pages of the backlog may still be in flight:
	// what follows was written after the start of the range all the same.
	resumed bool

	state   sync.Mutex // guards the fields below
	trouble trouble
	lag     lagState
	due     time.Time   // a read of the feed is due since; zero if none is
	unwatch func() bool // stops the watch of that read
	unsaved int         // pages of a manual handler after its last checkpoint
}

func newDelivery(ctx context.Context, e *env, own *keeper, passed *atomic.Int64) *delivery {
	lease := own.snapshot()
	return &delivery{
		env: e, LeaseRef: lease.ref(), token: lease.Token, container: e.source.Container, keeper: own, handled: passed, ctx: ctx, wakeup: newSignal(),
	}
}

func (d *delivery) manual() bool {
	_, manual := d.handler.(manualHandler)
	return manual
}

// call makes one handler call and returns the verdict of each item, or nil if all are done.
// A panic and a timeout are errors of the call. The lease is trusted when the call begins:
// a lease in doubt is renewed first.
func (d *delivery) call(p *page, items []Item, attempt int, resumed bool) []verdict {
	batch := Batch{
		LeaseRef: d.LeaseRef, Token: d.token, Items: items, Attempt: attempt,
		RequestCharge: p.charge, SessionToken: p.session, Continuation: p.token, Resumed: resumed, answers: &answers{},
	}
	if err := d.ensureTrusted(); err != nil {
		return batch.verdicts(err)
	}
	began := d.clock.Now()
	err := d.withHandlerContext(func(ctx context.Context) error { return d.invoke(ctx, &batch, p) })
	took := d.clock.Now().Sub(began)
	verdicts := batch.verdicts(err)
	if err == nil {
		err = firstFailure(verdicts)
	}
	if err == nil { // all items were answered as done
		verdicts = nil
	}
	d.countHandled(items, verdicts)
	if verdicts == nil {
		notify(d.obs.BatchHandled, BatchHandled{LeaseRef: d.LeaseRef, Items: len(items), Attempt: attempt, Took: took})
		return nil
	}
	notify(d.obs.BatchFailed, BatchFailed{LeaseRef: d.LeaseRef, Items: len(items), Attempt: attempt, Took: took, Err: err})
	return verdicts
}

// countHandled adds the items that are done to the lease's counters, for its next write.
func (d *delivery) countHandled(items []Item, verdicts []verdict) {
	n, last := int64(0), int64(0)
	for i := 0; i < len(items); {
		lsn, whole := items[i].LSN, true
		for ; i < len(items) && items[i].LSN == lsn; i++ {
			if verdicts != nil && verdicts[i].kind != done {
				whole = false
				continue
			}
			n++
		}
		if whole { // a transaction is delivered once all its changes are
			last = max(last, lsn)
		}
	}
	d.keeper.change(func(l *Lease) urgency {
		l.Handled, l.Delivered = l.Handled+n, max(l.Delivered, last)
		d.keeper.items += int(n)
		return later
	})
}

// ensureTrusted returns nil if the lease can be trusted. It renews a lease in doubt first.
func (d *delivery) ensureTrusted() error {
	for {
		if d.keeper.fence.endIfPassed() || d.ctx.Err() != nil {
			return context.Cause(d.ctx)
		}
		if !d.keeper.fence.inDoubt() {
			return nil
		}
		_ = d.keeper.renew(d.ctx) // it fails when ctx ends
	}
}

// withHandlerContext runs do with the handlers' context. A panic becomes an error. If the
// timeout or a lease in doubt ended the context, the error includes that cause.
func (d *delivery) withHandlerContext(do func(ctx context.Context) error) (err error) {
	ctx, end := context.WithCancelCause(d.ctx)
	defer end(nil)
	if limit := d.opts.HandlerTimeout; limit > 0 {
		timed, cancel := context.WithTimeoutCause(ctx, limit, ErrHandlerTimeout)
		defer cancel()
		ctx = timed
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
		if cause := context.Cause(ctx); err != nil && (errors.Is(cause, ErrHandlerTimeout) || errors.Is(cause, errDoubt)) {
			err = errors.Join(cause, err)
		}
	}()
	return do(&fencedContext{Context: ctx, fence: d.keeper.fence, end: end})
}

func (d *delivery) invoke(ctx context.Context, batch *Batch, p *page) error {
	if handle, manual := d.handler.(manualHandler); manual {
		return handle(ctx, batch, func(ctx context.Context) error { return d.checkpoint(ctx, batch, p) })
	}
	return d.handler.Handle(ctx, batch)
}

func (d *delivery) deadLetter(letter DeadLetter) error {
	if err := d.ensureTrusted(); err != nil {
		return err
	}
	return d.withHandlerContext(func(ctx context.Context) error { return d.opts.DeadLetter(ctx, letter) })
}

// progress moves the checkpoint past done pages. The checkpoint of a manual handler moves
// past pages without items only, and only if no handled page waits for its own checkpoint.
// Called with window.mu.
func (d *delivery) progress(pages []*page) {
	if !d.manual() {
		items, lsn, changed := 0, int64(0), int64(0)
		for _, p := range pages {
			items += p.count
			if p.lsn > lsn {
				lsn, changed = p.lsn, p.changed
			}
		}
		d.keeper.advance(pages[len(pages)-1].token, items, lsn, changed)
		return
	}
	d.state.Lock()
	defer d.state.Unlock()
	for _, p := range pages {
		switch {
		case p.count > 0:
			if d.keeper.snapshot().Continuation != p.token {
				d.unsaved++
			}
		case d.unsaved == 0:
			d.keeper.advance(p.token, 0, 0, 0)
		}
	}
}

// checkpoint stores the position after a page for a manual handler.
func (d *delivery) checkpoint(ctx context.Context, batch *Batch, p *page) error {
	if err := batch.answers.failure(); err != nil {
		return fmt.Errorf("no checkpoint after a document that is not done: %w", err)
	}
	d.state.Lock()
	d.unsaved = 0
	d.state.Unlock()
	d.keeper.advance(p.token, p.count, p.lsn, p.changed)
	return d.keeper.flush(ctx)
}
