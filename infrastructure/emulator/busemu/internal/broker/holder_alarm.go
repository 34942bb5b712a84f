package broker

// arm sets the alarm if something is due earlier than the alarm's time.
func (h *holder) arm() {
	at := h.next()
	if at != 0 && (h.armed == 0 || at < h.armed) {
		h.armed = at
		h.e.timers.set(&h.alarm, at)
	}
}

// next returns when the holder has something to do, 0 if never.
func (h *holder) next() (at int64) {
	sooner := func(t int64) {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	if h.locked.head != nil {
		sooner(h.locked.head.lockedUntil)
	}
	if h.held.head != nil {
		sooner(h.held.head.lockedUntil)
	}
	if len(h.expiry) > 0 {
		sooner(h.expiry[0].expiresAt)
	}
	if h.scheduled.Len() > 0 {
		sooner(h.scheduled.messageHeap[0].scheduledAt)
	}
	sooner(h.index.wakes.next())
	sooner(h.waiters.next())
	return at
}

// fire does everything that is due.
func (h *holder) fire(now int64) {
	var later callbacks
	h.mu.Lock()
	h.armed = 0
	if h.gone {
		h.mu.Unlock()
		return
	}
	h.expireLocks(now, &later)
	h.expireSessions(now, &later)
	more := h.wakeSwapped(now)
	h.expireMessages(now, &later)
	h.waiters.expire(now, h.path, &later)
	due := h.takeDue(now)
	h.serve(now, &later)
	h.arm()
	h.mu.Unlock()
	if len(due) > 0 {
		h.inlet.activate(due, &later)
	}
	later.run()
	if more {
		h.e.store.await() // otherwise all messages that expire would be in memory at the same time
	}
}
