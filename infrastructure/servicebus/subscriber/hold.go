package subscriber

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
)

// hold is a session that this process holds.
type hold struct {
	p       *SessionProcessor
	session *accepted
	shown   *Session           // as handlers see it
	queue   chan *amqp.Message // received, in order; closed when no more come
	lose    context.CancelCauseFunc
	last    Mark          // of the key
	permit  bool          // this session has one
	tooMany chan struct{} // closed when it is to be given back while idle

	completing sync.WaitGroup // of completions not confirmed
	observed   chan struct{}  // closed when the event before was observed
	spoilt     atomic.Bool    // a completion was not confirmed: no more events
}

// hold works on a session until it is idle, has had its time, failed or ctx ends. Then
// it closes it, which gives back at once what was not settled.
func (p *SessionProcessor) hold(ctx, handling context.Context, s *accepted) {
	locked, lose := context.WithCancelCause(handling)
	h := &hold{
		p: p, session: s, shown: &Session{id: s.id, link: s.link}, lose: lose,
		queue: make(chan *amqp.Message, p.opts.Prefetch), tooMany: make(chan struct{}), observed: closed,
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var read sync.WaitGroup
	read.Go(func() { h.read(reading) })
	lock := renewal{term: s.term, renew: h.shown.renewLock, lost: lose, log: p.log, of: "session " + s.id}
	lock.start(locked)
	defer func() {
		h.completing.Wait()
		lock.end()
		if err := s.detach(ctx); err != nil && locked.Err() == nil {
			p.log.WarnContext(ctx, "a session was not closed", "session", s.id, "error", err)
		}
		stop()
		read.Wait()
		lose(nil)
	}()
	if p.take(ctx, locked, s.id) {
		defer p.letGo(s.id)
		defer h.completing.Wait()
		h.work(ctx, locked)
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// read receives until the link ends: then the lock is lost, unless the link was closed.
func (h *hold) read(ctx context.Context) {
	defer close(h.queue)
	for {
		m, err := h.session.Receive(ctx, nil)
		if err != nil {
			h.lose(fmt.Errorf("%w: %w", ErrLockLost, err))
			return
		}
		select {
		case h.queue <- m: // there is room, unless the broker sends more than it may
		case <-ctx.Done():
			return
		}
	}
}

// work handles events in turns: while there are some it has a permit. A session that was
// granted has some, so it waits for the first one with a permit.
func (h *hold) work(ctx, locked context.Context) {
	defer h.freePermit()
	if !h.getPermit(ctx, locked) {
		return
	}
	began := time.Now()
	var err error
	if h.last, err = h.p.opts.Inbox.Last(locked, h.session.id); err != nil {
		h.p.log.WarnContext(ctx, "the inbox does not answer", "session", h.session.id, "error", err)
		h.freePermit()
		wait(ctx, locked, h.p.backoff(1)) // holding the session, or it would be back at once
		return
	}
	for m := h.await(ctx, locked); m != nil && h.turn(ctx, locked, m, began); {
		h.freePermit()
		place := h.p.rest(h)
		m = h.await(ctx, locked)
		h.p.wake(place)
		if m != nil && !h.getPermit(ctx, locked) {
			return
		}
	}
}

// getPermit waits for a permit. It reports false if one of the contexts ends first.
func (h *hold) getPermit(ctx, locked context.Context) bool {
	select {
	case h.p.permits <- struct{}{}:
		h.permit = true
	case <-ctx.Done():
	case <-locked.Done():
	}
	return h.permit
}

func (h *hold) freePermit() {
	if h.permit {
		h.permit = false
		<-h.p.permits
	}
}

// turn handles m and what is there behind it, and reports whether the session may go on.
func (h *hold) turn(ctx, locked context.Context, m *amqp.Message, began time.Time) bool {
	for ; m != nil; m = h.waiting() {
		if ctx.Err() != nil || locked.Err() != nil || !h.deliver(ctx, locked, m) || h.spoilt.Load() {
			return false
		}
		if h.p.opts.SessionMax > 0 && time.Since(began) >= h.p.opts.SessionMax {
			return false
		}
	}
	return locked.Err() == nil
}

// waiting returns the next message if it is there.
func (h *hold) waiting() *amqp.Message {
	select {
	case m := <-h.queue: // nil if it is closed
		return m
	default:
		return nil
	}
}

// await returns the next message; nil if the session is to be given back.
func (h *hold) await(ctx, locked context.Context) *amqp.Message {
	timer := time.NewTimer(h.p.opts.SessionIdle)
	defer timer.Stop()
	select {
	case m := <-h.queue:
		return m
	case <-timer.C:
	case <-h.tooMany:
	case <-ctx.Done():
	case <-locked.Done():
	}
	return nil
}

// deliver deals with one message and reports whether the session may go on. After an
// event was put back it may not: those behind it would overtake it.
func (h *hold) deliver(ctx, locked context.Context, m *amqp.Message) bool {
	out := &Outcome{Event: newEvent(h.session.id, m)}
	out.Event.session = h.shown
	out.Verdict = Judge(h.last, out.Event)
	out.Err = h.apply(locked, out)
	before, observed := h.observed, make(chan struct{})
	h.observed = observed
	end := func(ctx context.Context) {
		defer close(observed)
		if !settle(ctx, h.session.Receiver, m, out) {
			h.spoilt.Store(true)
		}
		<-before
		h.p.observe(locked, *out)
	}
	if out.Err == nil { // confirmed while the next events are handled
		h.completing.Add(1)
		h.p.settlers.run(ctx, func(ctx context.Context) {
			defer h.completing.Done()
			end(ctx)
		})
		return true
	}
	if !setAside(out.Err) {
		h.freePermit() // for others meanwhile
		wait(ctx, locked, h.p.backoff(out.Event.DeliveryCount))
	}
	patience, cancel := bounded(locked)
	defer cancel()
	end(patience)
	return out.Action != PutBack
}

// errWaitForMissing puts an event back that came before its predecessor.
var errWaitForMissing = errors.New("an earlier event of the key is missing; put back for it to arrive")

// apply does what the verdict asks for and sets the action. A nil error means that the
// event is recorded and can be completed.
func (h *hold) apply(ctx context.Context, out *Outcome) error {
	e := out.Event
	switch out.Verdict {
	case Duplicate, Stale:
		out.Action = Dropped
		return nil
	case Gap:
		out.Missing = e.Sequence - h.last.Sequence - 1
		if e.DeliveryCount <= h.p.opts.GapDeliveries {
			return errWaitForMissing
		}
	case Fresh:
	}
	err := h.p.handle(ctx, e)
	if err != nil && !setAside(err) {
		return err
	}
	if err := h.p.opts.Inbox.Record(ctx, e.Key, e.Mark()); err != nil {
		return fmt.Errorf("record event %s: %w", e.ID, err)
	}
	h.last = e.Mark()
	return err
}
