package subscriber

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// heldSession is a session whose events this process handles.
type heldSession struct {
	p       *SessionProcessor
	session *accepted
	public  *Session      // for handlers
	queue   chan *message // received, in order; closed when the link ends
	waiting []*message    // taken from the queue; the first is after a gap
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
		key:   handling.KeyProcessor{Runner: &p.runner, Inbox: p.opts.Inbox, GapDeliveries: p.opts.GapDeliveries, Parking: p.parking},
		queue: make(chan *message, p.opts.Prefetch), observed: closed,
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
		case h.queue <- &message{Message: m, event: newEvent(h.p.connector.source, h.session.id, m)}: // the queue has room for the whole credit
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
	if p := h.p; p.parking != nil && p.isWanted(h.session.id) {
		p.parking.Drain(locked, h.session.id)
	}
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

// handleQueued handles m and the messages in the queue. It reports whether the session may continue.
func (h *heldSession) handleQueued(ctx, locked context.Context, m *message, began time.Time) bool {
	for ; m != nil; m = h.queued() {
		if ctx.Err() != nil || locked.Err() != nil || !h.drain(locked) || !h.deliver(ctx, locked, m) || h.failed.Load() {
			return false
		}
		// Not while a message waits, because its waits would begin again with the next session.
		if h.p.opts.SessionMax > 0 && len(h.waiting) == 0 && time.Since(began) >= h.p.opts.SessionMax {
			return false
		}
	}
	return locked.Err() == nil
}

// queued returns the next message, or nil if there is none. A message after a gap comes after those that
// are not.
func (h *heldSession) queued() *message {
	if len(h.waiting) > 0 {
		i := max(0, slices.IndexFunc(h.waiting, func(m *message) bool { return !h.key.IsGap(m.event) }))
		m := h.waiting[i]
		h.waiting = slices.Delete(h.waiting, i, i+1)
		return m
	}
	select {
	case m := <-h.queue: // nil if it is closed
		return m
	default:
		return nil
	}
}

// nextMessage waits for the next message. It returns nil if the session must be closed.
func (h *heldSession) nextMessage(ctx, locked context.Context) *message {
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
func (h *heldSession) deliver(ctx, locked context.Context, m *message) bool {
	out := &consumer.Outcome{Event: m.event}
	h.p.runner.Received(ctx)
	handlerFailed := false
	if isForOtherSubscription(h.p.connector.source, m.event) { // the inbox may have forgotten it
		out.Action, out.Verdict = consumer.Dropped, consumer.Stale
	} else {
		handlerFailed = h.key.Process(locked, out, &m.progress)
	}
	if out.Err != nil && out.Action != consumer.Parked && (!handlerFailed || handling.IsUnavailable(out.Err) || !h.refuse(locked, out)) {
		return h.wait(ctx, locked, m, out)
	}
	previous, observed := h.observed, make(chan struct{})
	h.observed = observed
	finish := func(ctx context.Context) {
		defer close(observed)
		if !settle(ctx, h.session.Receiver, m.Message, out) {
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
	if out.Action == consumer.Handled && !handling.IsFinal(out.Err) {
		h.releasePermit() // for other sessions during the backoff
		handling.Wait(ctx, locked, h.p.runner.BackoffOf(out.Event, out.Event.DeliveryCount))
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

// drain carries out the intent of an operator. It reports whether the mark of the key is known again.
func (h *heldSession) drain(locked context.Context) bool {
	if h.p.parking == nil || !h.p.isWanted(h.session.id) {
		return true
	}
	h.p.parking.Drain(locked, h.session.id)
	return h.key.Load(locked, h.session.id) == nil
}

// refuse parks or drops a refused event, or makes settle dead-letter it. It reports false if that failed.
func (h *heldSession) refuse(locked context.Context, out *consumer.Outcome) bool {
	attempts := 0 // the broker dead-letters
	if h.key.Parks(out.Event) {
		attempts = h.p.opts.Attempts
	}
	reason := h.p.runner.Refusal(out.Event, out.Err, out.Event.DeliveryCount, attempts)
	switch {
	case reason == nil || locked.Err() != nil:
		return true
	case h.p.runner.Drops(out.Event):
		return h.key.Drop(locked, out, reason)
	case !h.key.Parks(out.Event):
		out.Err = reason
		return true
	}
	if err := h.key.Park(locked, out.Event, reason, out.Event.DeliveryCount); err != nil {
		out.Err = err
		return false
	}
	out.Action = consumer.Parked
	return true
}

// wait keeps a message that waits for an earlier one of its key, or whose inbox or handler is unavailable,
// with the lock held.
// It does not abandon it, because the broker would count that as a delivery. It reports whether the session
// may continue. Otherwise the session is closed, which returns the message without a count.
func (h *heldSession) wait(ctx, locked context.Context, m *message, out *consumer.Outcome) bool {
	defer h.p.runner.Released(ctx)
	<-h.observed // so that outcomes are observed in order
	out.Action = consumer.Abandoned
	if !handling.IsUntried(out.Err) {
		h.p.runner.Observe(locked, *out)
	}
	h.releasePermit() // for other sessions
	if !handling.IsWait(out.Err) {
		handling.Wait(ctx, locked, h.p.runner.BackoffOf(out.Event, 1))
		return false
	}
	h.waiting = slices.Insert(h.waiting, 0, m)
	timer := time.NewTimer(h.p.runner.Backoff(m.progress.GapWaits))
	defer timer.Stop()
	for over := false; !over; {
		select {
		case next := <-h.queue:
			if next == nil {
				return false
			}
			h.waiting = append(h.waiting, next)
			over = h.key.IsFresh(next.event)
		case <-timer.C:
			over = true
			if err := h.key.Load(locked, h.session.id); err != nil { // another process may have handled the missing event
				h.p.runner.Log.WarnContext(ctx, "inbox unavailable", "session", h.session.id, "error", err)
				return false
			}
		case <-ctx.Done():
			return false
		case <-locked.Done():
			return false
		}
	}
	return h.acquirePermit(ctx, locked)
}
