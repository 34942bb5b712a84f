package broker

import (
	"slices"
	"time"
)

// SessionState returns the state of a session, nil if none is set. It refuses a session
// without receiver, and one that another receiver than by holds (SessionLockLost).
//
// Source: com.microsoft:get-session-state, azservicebus internal/mgmt.go.
func (b *Broker) SessionState(path, session string, by *Receiver) ([]byte, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.heldSession(session, by.any())
	if err != nil {
		return nil, err
	}
	return s.state, nil
}

// SetSessionState sets the state of a session that has a receiver, by if that is not nil; a nil
// state clears it. A state may be as large as a message.
//
// Source: com.microsoft:set-session-state, azservicebus internal/mgmt.go.
func (b *Broker) SetSessionState(path, session string, by *Receiver, state []byte, done func(error)) {
	h, err := b.holderAt(path)
	if err != nil {
		done(err)
		return
	}
	var later callbacks
	defer later.run()
	if limit := b.maxMessageSize(); len(state) > limit {
		done(errorf(MessageSizeExceeded, "A session state of %d bytes exceeds the limit of %d bytes.", len(state), limit))
		return
	}
	now := b.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.heldSession(session, by.any())
	if err != nil {
		later.call(func() { done(err) })
		return
	}
	s.state, s.stateAt = slices.Clone(state), now
	if state != nil && s.state == nil {
		s.state = []byte{}
	}
	id, stored := h.id, s.state
	b.submit(&waiting{done: done, records: func(w *writer) { w.putSession(id, session, now, stored) }}, &later)
}

// ListOptions select the sessions that ListSessions returns.
type ListOptions struct {
	// UpdatedAfter selects sessions whose state was set after it. Zero selects sessions with
	// messages or state.
	UpdatedAfter time.Time
	Skip, Top    int // Top 0: all
}

// ListSessions returns session ids in order.
//
// Source: com.microsoft:get-message-sessions, azservicebus internal/mgmt.go.
func (b *Broker) ListSessions(path string, o ListOptions) ([]string, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions == nil {
		return nil, errorf(NotAllowed, "The entity '%s' does not require sessions.", h.path)
	}
	after := nanos(o.UpdatedAfter)
	var ids []string
	for id, s := range h.sessions {
		if after == 0 && (s.messages > 0 || s.state != nil) || after != 0 && s.stateAt > after {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = ids[min(max(0, o.Skip), len(ids)):]
	if o.Top > 0 {
		ids = ids[:min(o.Top, len(ids))]
	}
	return ids, nil
}
