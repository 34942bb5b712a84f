package broker

import (
	"strings"
)

// sessionTable has the sessions of a holder. Guarded by the holder's mu.
type sessionTable struct {
	sessions     map[string]*session // by id; nil without sessions
	mostSessions int                 // highest size of sessions since the map was made
	available    sessionList         // without receiver, with ready messages; oldest first
	held         sessionList         // with a receiver, by lockedUntil
}

// session returns the session with an id, a new one if necessary.
func (t *sessionTable) session(id string) *session {
	s := t.sessions[id]
	if s == nil {
		s = &session{id: strings.Clone(id)} // so that the id does not keep a message's memory
		t.sessions[s.id] = s
	}
	return s
}

// dropIdle drops a session without messages, state and receiver.
func (t *sessionTable) dropIdle(s *session) {
	if s.messages == 0 && s.receiver == nil && s.state == nil && t.sessions[s.id] == s {
		t.available.removeIf(s)
		delete(t.sessions, s.id)
		t.mostSessions = max(t.mostSessions, len(t.sessions)+1)
		if len(t.sessions) == 0 && t.mostSessions > 1000 { // a map never shrinks, so a new one is made
			t.sessions, t.mostSessions = make(map[string]*session), 0
		}
	}
}

// heldSession returns a session that has a receiver. by is the *Receiver that must hold it, nil
// if it may be any.
func (h *stock) heldSession(id string, by any) (*session, error) {
	if h.sessions == nil {
		return nil, errorf(NotAllowed, "The entity '%s' does not require sessions.", h.path)
	}
	if s := h.sessions[id]; s != nil && s.receiver != nil && (by == nil || s.receiver == by) {
		return s, nil
	}
	return nil, sessionLost(id)
}

// swappedReady returns a function that reports whether a swapped out message may belong to s.
// It must be called with rising numbers. Only ready messages are known to belong to a session
// before they are read.
func (s *session) swappedReady() func(h *stock, sequence int64) bool {
	if s == nil {
		return func(*stock, int64) bool { return true }
	}
	rest := s.ready.swapped // a copy: the session keeps its own
	return func(h *stock, sequence int64) bool {
		if h.index.swapped(sequence) != inReady {
			return true
		}
		for rest.first != 0 && rest.first < sequence {
			rest.pop()
		}
		return rest.first == sequence
	}
}
