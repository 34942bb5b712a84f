package broker

import (
	"strings"
)

// session returns the session of an id, a new one if need be.
func (h *stock) session(id string) *session {
	s := h.sessions[id]
	if s == nil {
		s = &session{id: strings.Clone(id)} // not a piece of a message
		h.sessions[s.id] = s
	}
	return s
}

// dropIdle forgets a session that nothing remembers.
func (h *stock) dropIdle(s *session) {
	if s.messages == 0 && s.receiver == nil && s.state == nil && h.sessions[s.id] == s {
		h.available.removeIf(s)
		delete(h.sessions, s.id)
		h.mostSessions = max(h.mostSessions, len(h.sessions)+1)
		if len(h.sessions) == 0 && h.mostSessions > 1000 { // a map never shrinks
			h.sessions, h.mostSessions = make(map[string]*session), 0
		}
	}
}

// heldSession returns a session that somebody holds.
func (h *stock) heldSession(id string) (*session, error) {
	if h.sessions == nil {
		return nil, errorf(NotAllowed, "The entity '%s' does not require sessions.", h.path)
	}
	if s := h.sessions[id]; s != nil && s.receiver != nil {
		return s, nil
	}
	return nil, sessionLost(id)
}

// swappedReady returns a function, to be called with rising numbers of messages that are
// swapped out, that reports whether one may be of s. Only those that are ready are known
// to be of a session before they are read.
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
