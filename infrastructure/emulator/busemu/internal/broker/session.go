package broker

// session has the messages of one session id in one holder. It exists while it has messages,
// state or a receiver. Guarded by the holder's mu.
type session struct {
	id          string
	ready       readyList
	locked      lockedList // in order of delivery
	messages    int        // all of them: ready, locked, deferred, scheduled
	state       []byte     // nil = not set
	stateAt     int64
	receiver    any  // the *Receiver that holds it, nil = none; its type is declared in a room above
	toServe     bool // in holder.toServe
	lockedUntil int64
	prev, next  *session     // in a sessionList
	list        *sessionList // which one, nil = none
}

func sessionLost(id string) *Error {
	return errorf(SessionLockLost, "The lock of session '%s' has expired. Accept the session again.", id)
}

// has reports whether m belongs to s; a nil s means all sessions.
func (s *session) has(m *message) bool {
	return s == nil || m.session == s || m.session == nil && m.body.session == s.id // the latter was read by peek
}
