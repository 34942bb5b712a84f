package broker

import (
	"time"
)

// Mode is the way in which a receiver takes messages.
type Mode uint8

// The modes of a receiver.
const (
	PeekLock Mode = iota
	ReceiveAndDelete
	Browse
)

// ReceiverOptions configure a receiver.
type ReceiverOptions struct {
	Mode Mode
	// Deliver receives messages as credit allows; required. The slice belongs to the broker,
	// which reuses it after the call. Deliver is called with the entity's lock held, one call
	// at a time for each receiver. It must not block and must not call the broker.
	Deliver func([]Delivery)
	// Closed is called at most once, when the broker closes the receiver: with
	// SessionLockLost, DetachForced (entity deleted), DetachAll's reason or OperationCancelled
	// (broker closed). It is not called after Close.
	Closed func(error)
}

// Receiver receives messages from a queue, a subscription, a dead-letter queue, or one session
// of the first two. Safe for concurrent use.
type Receiver struct {
	holder  *holder
	session *session // immutable; held until the receiver is gone
	id      string   // of the session
	options ReceiverOptions

	// Guarded by holder.mu.
	credit     uint32
	delivered  uint32
	out        []Delivery // not passed to Deliver yet
	removing   int        // batches whose removal is not durable yet
	drains     []func(uint32)
	withCredit bool    // in line.withCredit
	browsed    []int64 // last sequence numbers seen by a browser, one for each partition
	gone       bool
}

func (h *holder) mayReceive() error {
	switch {
	case h.gone:
		return h.notFound()
	case h.config.receiveDisabled:
		return errorf(EntityDisabled, "Messaging entity '%s' is currently disabled.", h.path)
	case h.config.forwardTo != "":
		return errorf(NotAllowed, "Can not create a message receiver on '%s', which has auto-forwarding enabled.", h.path)
	}
	return nil
}

func (s site) notFound() *Error { return notFound(s.path) }

func (h *holder) newReceiver(s *session, o ReceiverOptions) *Receiver {
	r := &Receiver{holder: h, session: s, options: o}
	if s != nil {
		r.id = s.id
	}
	h.receivers[r] = struct{}{}
	if o.Mode == Browse {
		r.browsed = make([]int64, len(h.index.tables))
		h.browsing = append(h.browsing, r)
	}
	h.touch()
	return r
}

// Path returns the entity's path, with the case in which it was created.
func (r *Receiver) Path() string { return r.holder.path }

// Session returns the id of the session, and whether the receiver has one.
func (r *Receiver) Session() (id string, ok bool) { return r.id, r.session != nil }

// SessionLockedUntil returns when the session's lock expires; zero without session.
func (r *Receiver) SessionLockedUntil() time.Time {
	if r.session == nil {
		return time.Time{}
	}
	r.holder.mu.Lock()
	defer r.holder.mu.Unlock()
	return time.Unix(0, r.session.lockedUntil)
}

// Close closes the receiver. It releases a session at once: unsettled messages return to their
// places without counting a failed delivery. Locks on messages without session outlive the
// receiver.
func (r *Receiver) Close() {
	h := r.holder
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.gone {
		return
	}
	h.drop(r, nil, &later)
	now := h.e.now()
	if r.session != nil && r.removing == 0 { // otherwise removal.restore releases the session
		h.releaseSession(r.session, false, now, &later)
	}
	h.serve(now, &later)
	h.arm()
}

// drop closes a receiver and passes reason to it unless it is nil. The caller must release the
// session.
func (h *holder) drop(r *Receiver, reason error, later *callbacks) {
	if r.gone {
		return
	}
	r.gone, r.credit = true, 0
	h.touch()
	h.line.remove(r)
	for _, drained := range r.drains {
		at := r.delivered
		later.call(func() { drained(at) })
	}
	r.drains = nil
	if reason != nil && r.options.Closed != nil {
		later.call(func() { r.options.Closed(reason) })
	}
}

// detach closes all receivers and refuses all waiters.
func (h *holder) detach(reason error, later *callbacks) {
	now := h.e.now()
	h.waiters.refuse(later, func(*waiter) bool { return true }, reason)
	for r := range h.receivers {
		h.drop(r, reason, later)
	}
	for s := h.held.head; s != nil; s = h.held.head {
		h.releaseSession(s, false, now, later)
	}
}

// any returns r as a session's receiver, nil without one.
func (r *Receiver) any() any {
	if r == nil {
		return nil
	}
	return r
}

// receiverOf returns the receiver that holds a session, nil if there is none.
func receiverOf(s *session) *Receiver {
	r, _ := s.receiver.(*Receiver)
	return r
}
