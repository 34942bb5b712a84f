package broker

import (
	"strings"
	"time"
)

// session is the messages of one session id in one holder, and who holds them. It
// exists while it has messages or state or is held. Guarded by the holder's mu.
type session struct {
	id          string
	ready       readyList
	locked      lockedList // in order of delivery
	messages    int        // all of them: ready, locked, deferred, scheduled
	state       []byte     // nil = not set
	stateAt     int64
	receiver    *Receiver // nil = nobody holds it
	fed         bool      // in holder.fed
	lockedUntil int64
	prev, next  *session     // in a sessionList
	list        *sessionList // which one, nil = none
}

// session returns the session of an id, a new one if need be.
func (h *holder) session(id string) *session {
	s := h.sessions[id]
	if s == nil {
		s = &session{id: strings.Clone(id)} // not a piece of a message
		h.sessions[s.id] = s
	}
	return s
}

// dropIdle forgets a session that nothing remembers.
func (h *holder) dropIdle(s *session) {
	if s.messages == 0 && s.receiver == nil && s.state == nil && h.sessions[s.id] == s {
		h.available.removeIf(s)
		delete(h.sessions, s.id)
		h.mostSessions = max(h.mostSessions, len(h.sessions)+1)
		if len(h.sessions) == 0 && h.mostSessions > 1000 { // a map never shrinks
			h.sessions, h.mostSessions = make(map[string]*session), 0
		}
	}
}

// offerSession makes a session that has ready messages and no receiver available: to the
// first waiter, else to whoever asks next.
func (h *holder) offerSession(s *session, now int64, later *callbacks) {
	if s.receiver != nil || s.ready.n == 0 || s.list != nil {
		return
	}
	if len(h.waiters) == 0 {
		h.available.append(s)
		return
	}
	w := h.waiters[0]
	h.waiters[0] = nil
	h.waiters = h.waiters[1:]
	h.grant(s, w, now, later)
}

// grant locks a session that nobody holds for a waiter.
func (h *holder) grant(s *session, w *waiter, now int64, later *callbacks) {
	h.available.removeIf(s)
	r := h.newReceiver(s, w.options)
	s.receiver = r
	s.lockedUntil = now + h.config.lockDuration
	h.held.insert(s)
	h.counters.SessionsHeld++
	w.granted = true
	later.call(func() { w.opened(r, nil) })
}

// releaseSession takes a session from its receiver. Its locked messages return to their places.
func (h *holder) releaseSession(s *session, failed bool, now int64, later *callbacks) {
	h.held.removeIf(s)
	s.receiver = nil
	for m := s.locked.head; m != nil; m = s.locked.head {
		if failed {
			h.counters.LocksLost++
		}
		h.giveBack(m, failed, false, nil, now, later)
	}
	h.offerSession(s, now, later)
	h.dropIdle(s)
}

// expireSessions takes sessions whose locks have ended from their receivers.
func (h *holder) expireSessions(now int64, later *callbacks) {
	for s := h.held.head; s != nil && s.lockedUntil <= now; s = h.held.head {
		h.loseSession(s, now, later)
	}
}

func (h *holder) loseSession(s *session, now int64, later *callbacks) {
	r := s.receiver
	h.drop(r, sessionLost(s.id), later)
	h.releaseSession(s, true, now, later)
}

func sessionLost(id string) *Error {
	return errorf(SessionLockLost, "The lock of session '%s' has expired. Accept the session again.", id)
}

// RenewSessionLock renews a session's lock and returns its new end.
func (b *Broker) RenewSessionLock(path, session string) (time.Time, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return time.Time{}, err
	}
	now := b.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.heldSession(session)
	if err != nil {
		return time.Time{}, err
	}
	h.held.removeIf(s)
	s.lockedUntil = now + h.config.lockDuration
	h.held.insert(s)
	return time.Unix(0, s.lockedUntil), nil
}

// heldSession returns a session that somebody holds.
func (h *holder) heldSession(id string) (*session, error) {
	if h.sessions == nil {
		return nil, errorf(NotAllowed, "The entity '%s' does not require sessions.", h.path)
	}
	if s := h.sessions[id]; s != nil && s.receiver != nil {
		return s, nil
	}
	return nil, sessionLost(id)
}

// ExpireSession expires the lock of a session now; its receiver is closed with
// SessionLockLost.
func (b *Broker) ExpireSession(path, session string) error {
	h, err := b.holderAt(path)
	if err != nil {
		return err
	}
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.heldSession(session)
	if err != nil {
		return err
	}
	now := b.now()
	h.loseSession(s, now, &later)
	h.serve(now, &later)
	h.arm()
	return nil
}

// sessionList is a doubly linked list. A session is in at most one.
type sessionList struct{ head, tail *session }

func (l *sessionList) append(s *session) { l.after(l.tail, s) }

// insert puts s behind all whose locks end no later.
func (l *sessionList) insert(s *session) {
	prev := l.tail
	for prev != nil && prev.lockedUntil > s.lockedUntil {
		prev = prev.prev
	}
	l.after(prev, s)
}

func (l *sessionList) after(prev, s *session) {
	s.list, s.prev = l, prev
	if prev == nil {
		s.next, l.head = l.head, s
	} else {
		s.next, prev.next = prev.next, s
	}
	if s.next == nil {
		l.tail = s
	} else {
		s.next.prev = s
	}
}

// removeIf takes s out of l if that is where it is.
func (l *sessionList) removeIf(s *session) {
	if s.list != l {
		return
	}
	if s.prev == nil {
		l.head = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.tail = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.list, s.prev, s.next = nil, nil, nil
}
