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

// heldSession is a session whose events this process handles.
type heldSession struct {
	p       *SessionProcessor
	session *accepted
	public  *Session           // for handlers
	queue   chan *amqp.Message // received, in order; closed when the link ends
	lose    context.CancelCauseFunc
	key     handling.KeyProcessor
	permit  bool          // whether this session holds a permit
	evicted chan struct{} // closed to end the current idle time early

	completing sync.WaitGroup // unconfirmed completions
	observed   chan struct{}  // closed when the outcome of the previous event was observed
	failed     atomic.Bool    // a completion was not confirmed, so no further events may be handled
}

// hold handles the events of a session until it is idle, exceeds SessionMax, fails, or ctx ends. Then it
// closes the session, which returns unsettled events at once.
func (p *SessionProcessor) hold(ctx, working context.Context, s *accepted) {
	locked, lose := context.WithCancelCause(working)
	h := &heldSession{
		p: p, session: s, public: &Session{id: s.id, link: s.link}, lose: lose,
		key:   handling.KeyProcessor{Runner: &p.runner, Inbox: p.opts.Inbox, GapDeliveries: p.opts.GapDeliveries},
		queue: make(chan *amqp.Message, p.opts.Prefetch), observed: closed,
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	var read sync.WaitGroup
	read.Go(func() { h.read(reading) })
	lock := renewal{duration: s.lockDuration, renew: h.public.renewLock, lost: lose, log: p.runner.Log, target: "session " + s.id}
	lock.start(locked)
	defer func() {
		h.completing.Wait()
		lock.stop()
		if err := s.detach(ctx); err != nil && locked.Err() == nil {
			p.runner.Log.WarnContext(ctx, "session not closed", "session", s.id, "error", err)
		}
		stop()
		read.Wait()
		lose(nil)
	}()
	if p.acquireKey(ctx, locked, s.id) {
		defer p.releaseKey(s.id)
		defer h.completing.Wait()
		h.run(ctx, context.WithValue(locked, sessionKey{}, h.public))
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// read receives messages until the link ends, which means that the lock is lost unless the link was
// detached here.
func (h *heldSession) read(ctx context.Context) {
	defer close(h.queue)
	for {
		m, err := h.session.Receive(ctx, nil)
		if err != nil {
			h.lose(fmt.Errorf("%w: %w", consumer.ErrLockLost, err))
			return
		}
		select {
		case h.queue <- m: // the queue has room for the whole credit
		case <-ctx.Done():
			return
		}
	}
}

// run handles events. It holds a permit while there are events, and releases it while the session is idle.
// It waits for the first event with a permit, because a granted session has events.
func (h *heldSession) run(ctx, locked context.Context) {
	defer h.releasePermit()
	if !h.acquirePermit(ctx, locked) {
		return
	}
	began := time.Now()
	if err := h.key.Load(locked, h.session.id); err != nil {
		h.p.runner.Log.WarnContext(ctx, "inbox unavailable", "session", h.session.id, "error", err)
		h.releasePermit()
		handling.Wait(ctx, locked, h.p.runner.Backoff(1)) // with the session held, otherwise the broker would grant it again at once
		return
	}
	for m := h.nextMessage(ctx, locked); m != nil && h.handleQueued(ctx, locked, m, began); {
		h.releasePermit()
		place := h.p.addIdle(h)
		m = h.nextMessage(ctx, locked)
		h.p.removeIdle(place)
		if m != nil && !h.acquirePermit(ctx, locked) {
			return
		}
	}
}

// acquirePermit blocks until there is a permit. It reports false if one of the contexts ends first.
func (h *heldSession) acquirePermit(ctx, locked context.Context) bool {
	select {
	case h.p.permits <- struct{}{}:
		h.permit = true
	case <-ctx.Done():
	case <-locked.Done():
	}
	return h.permit
}

func (h *heldSession) releasePermit() {
	if h.permit {
		h.permit = false
		<-h.p.permits
	}
}

// handleQueued handles m and the messages in the queue. It reports whether the session may continue.
func (h *heldSession) handleQueued(ctx, locked context.Context, m *amqp.Message, began time.Time) bool {
	for ; m != nil; m = h.queued() {
		if ctx.Err() != nil || locked.Err() != nil || !h.deliver(ctx, locked, m) || h.failed.Load() {
			return false
		}
		if h.p.opts.SessionMax > 0 && time.Since(began) >= h.p.opts.SessionMax {
			return false
		}
	}
	return locked.Err() == nil
}

// queued returns the next message in the queue, or nil if it is empty.
func (h *heldSession) queued() *amqp.Message {
	select {
	case m := <-h.queue: // nil if it is closed
		return m
	default:
		return nil
	}
}

// nextMessage waits for the next message. It returns nil if the session must be closed.
func (h *heldSession) nextMessage(ctx, locked context.Context) *amqp.Message {
	timer := time.NewTimer(h.p.opts.SessionIdle)
	defer timer.Stop()
	select {
	case m := <-h.queue:
		return m
	case <-timer.C:
	case <-h.evicted:
	case <-ctx.Done():
	case <-locked.Done():
	}
	return nil
}

// deliver handles and settles one message. It reports whether the session may continue, which it must not
// after an abandoned event, because later events would overtake it.
func (h *heldSession) deliver(ctx, locked context.Context, m *amqp.Message) bool {
	out := &consumer.Outcome{Event: newEvent(h.session.id, m)}
	h.p.runner.Received(ctx)
	h.key.Process(locked, out)
	previous, observed := h.observed, make(chan struct{})
	h.observed = observed
	finish := func(ctx context.Context) {
		defer close(observed)
		if !settle(ctx, h.session.Receiver, m, out) {
			h.failed.Store(true)
		}
		<-previous // so that outcomes are observed in order
		h.p.runner.Released(locked)
		h.p.runner.Observe(locked, *out)
	}
	if out.Err == nil { // the confirmation arrives while later events are handled
		h.completing.Add(1)
		h.p.settlers.run(ctx, func(ctx context.Context) {
			defer h.completing.Done()
			finish(ctx)
		})
		return true
	}
	if !handling.IsFinal(out.Err) {
		h.releasePermit() // for other sessions during the backoff
		handling.Wait(ctx, locked, h.p.runner.Backoff(out.Event.DeliveryCount))
	}
	settling, cancel := bounded(locked)
	defer cancel()
	finish(settling)
	if out.Action == consumer.DeadLettered || out.Action == consumer.Deferred {
		if err := h.key.Record(settling, out.Event); err != nil {
			h.p.runner.Log.WarnContext(locked, "dead-lettered or deferred event not recorded in the inbox", "session", h.session.id, "error", err)
		}
	}
	return out.Action != consumer.Abandoned
}
