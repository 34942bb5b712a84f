package broker

// offerSession grants a session with ready messages and no receiver to the first waiter, or
// makes it available.
func (h *holder) offerSession(s *session, now int64, later *callbacks) {
	if s.receiver != nil || s.ready.n == 0 || s.list != nil {
		return
	}
	if w := h.waiters.pop(); w != nil {
		h.grant(s, w, now, later)
		return
	}
	h.available.append(s)
}

// grant locks a session without receiver for a waiter.
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

// releaseSession takes a session from its receiver. Locked messages return to their places.
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
	r := receiverOf(s)
	h.drop(r, sessionLost(s.id), later)
	h.releaseSession(s, true, now, later)
}
