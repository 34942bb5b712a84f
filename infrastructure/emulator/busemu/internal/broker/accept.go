package broker

import (
	"cmp"
	"time"
)

// AcceptOptions select the session to accept.
type AcceptOptions struct {
	// Session is the session to accept; nil means the next one that has messages and no
	// receiver.
	Session *string
	// Timeout limits the wait for a next session. Default 65 s, as at the service.
	Timeout time.Duration
}

const defaultAcceptTimeout = 65 * time.Second

// AcceptSession locks a session and opens a receiver on it, without credit.
//
// It supports a given session, which need not exist yet, and the next session with messages,
// for which it waits. It refuses entities without sessions (NotAllowed) and a session that
// another receiver holds (SessionCannotBeLocked).
//
// opened is called once, with the receiver or an error: those above, NotFound, Timeout or
// OperationCancelled. cancel ends the wait with OperationCancelled, unless a session was
// granted before. In that case opened still gets the receiver, which the caller must close.
//
// Source: azservicebus session_receiver.go.
func (b *Broker) AcceptSession(path string, a AcceptOptions, o ReceiverOptions, opened func(*Receiver, error)) (cancel func()) {
	nothing := func() {}
	h, err := b.holderAt(path)
	if err != nil {
		opened(nil, err)
		return nothing
	}
	var later callbacks
	defer later.run()
	now := b.now()
	w := &waiter{options: o, opened: opened, until: now + int64(cmp.Or(a.Timeout, defaultAcceptTimeout))}
	h.mu.Lock()
	defer h.mu.Unlock()
	refuse := func(err error) func() {
		later.call(func() { opened(nil, err) })
		return nothing
	}
	if err := h.mayReceive(); err != nil {
		return refuse(err)
	}
	if h.sessions == nil {
		return refuse(errorf(NotAllowed, "A sessionful message receiver cannot be created on an entity that does not require sessions. "+
			"Ensure RequiresSession is set to true when creating a Queue or Subscription to enable sessionful behavior."))
	}
	defer h.arm()
	if a.Session != nil {
		s := h.session(*a.Session)
		if s.receiver != nil {
			return refuse(errorf(SessionCannotBeLocked, "The requested session '%s' cannot be accepted. It may be locked by another receiver.", s.id))
		}
		h.grant(s, w, now, &later)
		return nothing
	}
	if s := h.available.head; s != nil {
		h.grant(s, w, now, &later)
		return nothing
	}
	h.waiters.add(w)
	return func() { h.cancelWait(w) }
}

func (h *holder) cancelWait(w *waiter) {
	h.mu.Lock()
	cancelled := h.waiters.cancel(w)
	h.mu.Unlock()
	if cancelled {
		w.opened(nil, errorf(OperationCancelled, "The request for a session was cancelled."))
	}
}
