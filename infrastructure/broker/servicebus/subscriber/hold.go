package subscriber

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// hold is a session that this process holds.
type hold struct {
	p       *SessionProcessor
	session *accepted
	shown   *Session           // as handlers see it
	queue   chan *amqp.Message // received, in order; closed when no more come
	lose    context.CancelCauseFunc
	key     handling.KeyProcessor // what is known of the key
	permit  bool                  // this session has one
	tooMany chan struct{}         // of the present rest: closed when the session is to be given back

	completing sync.WaitGroup // of completions not confirmed
	observed   chan struct{}  // closed when the event before was observed
	spoilt     atomic.Bool    // a completion was not confirmed: no more events
}

// hold works on a session until it is idle, has had its time, failed or ctx ends. Then
// it closes it, which gives back at once what was not settled.
func (p *SessionProcessor) hold(ctx, working context.Context, s *accepted) {
	locked, lose := context.WithCancelCause(working)
	h := &hold{
		p: p, session: s, shown: &Session{id: s.id, link: s.link}, lose: lose,
		key:   handling.KeyProcessor{Runner: &p.work, Inbox: p.opts.Inbox, GapDeliveries: p.opts.GapDeliveries},
		queue: make(chan *amqp.Message, p.opts.Prefetch), observed: closed,
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var read sync.WaitGroup
	read.Go(func() { h.read(reading) })
	lock := renewal{term: s.term, renew: h.shown.renewLock, lost: lose, log: p.work.Log, of: "session " + s.id}
	lock.start(locked)
	defer func() {
		h.completing.Wait()
		lock.end()
		if err := s.detach(ctx); err != nil && locked.Err() == nil {
			p.work.Log.WarnContext(ctx, "a session was not closed", "session", s.id, "error", err)
		}
		stop()
		read.Wait()
		lose(nil)
	}()
	if p.take(ctx, locked, s.id) {
		defer p.letGo(s.id)
		defer h.completing.Wait()
		h.work(ctx, context.WithValue(locked, sessionKey{}, h.shown))
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// read receives until the link ends: then the lock is lost, unless the link was closed.
func (h *hold) read(ctx context.Context) {
	defer close(h.queue)
	for {
		m, err := h.session.Receive(ctx, nil)
		if err != nil {
			h.lose(fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
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
	if err := h.key.Load(locked, h.session.id); err != nil {
		h.p.work.Log.WarnContext(ctx, "the inbox does not answer", "session", h.session.id, "error", err)
		h.freePermit()
		handling.Wait(ctx, locked, h.p.work.Backoff(1)) // holding the session, or it would be back at once
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
	out := &consumer.Outcome{Event: newEvent(h.session.id, m)}
	h.key.Process(locked, out)
	before, observed := h.observed, make(chan struct{})
	h.observed = observed
	end := func(ctx context.Context) {
		defer close(observed)
		if !settle(ctx, h.session.Receiver, m, out) {
			h.spoilt.Store(true)
		}
		<-before
		h.p.work.Observe(locked, *out)
	}
	if out.Err == nil { // confirmed while the next events are handled
		h.completing.Add(1)
		h.p.settlers.run(ctx, func(ctx context.Context) {
			defer h.completing.Done()
			end(ctx)
		})
		return true
	}
	if !handling.IsFinal(out.Err) {
		h.freePermit() // for others meanwhile
		handling.Wait(ctx, locked, h.p.work.Backoff(out.Event.DeliveryCount))
	}
	patience, cancel := bounded(locked)
	defer cancel()
	end(patience)
	if out.Action == consumer.DeadLettered || out.Action == consumer.Deferred {
		if err := h.key.Record(patience, out.Event); err != nil {
			h.p.work.Log.WarnContext(locked, "an event that was set aside is not marked in the inbox", "session", h.session.id, "error", err)
		}
	}
	return out.Action != consumer.Abandoned
}
