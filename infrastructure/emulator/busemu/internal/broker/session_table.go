package broker

import (
	"strings"
)

// sessionTable is the sessions of a holder. Guarded by the holder's mu.
type sessionTable struct {
	sessions     map[string]*session // by id; nil without sessions
	mostSessions int                 // the most that sessions has held
	available    sessionList         // without receiver, with ready messages; oldest first
	held         sessionList         // with a receiver, by lockedUntil
}

// session returns the session of an id, a new one if need be.
func (t *sessionTable) session(id string) *session {
	s := t.sessions[id]
	if s == nil {
		s = &session{id: strings.Clone(id)} // not a piece of a message
		t.sessions[s.id] = s
	}
	return s
}

// dropIdle forgets a session that nothing remembers.
func (t *sessionTable) dropIdle(s *session) {
	if s.messages == 0 && s.receiver == nil && s.state == nil && t.sessions[s.id] == s {
		t.available.removeIf(s)
		delete(t.sessions, s.id)
		t.mostSessions = max(t.mostSessions, len(t.sessions)+1)
		if len(t.sessions) == 0 && t.mostSessions > 1000 { // a map never shrinks
			t.sessions, t.mostSessions = make(map[string]*session), 0
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
