package broker

// giveBack returns a locked message to its place. A failed delivery counts, and dead-letters
// the message if it was the last one allowed. changed forces a state record. done, if not nil,
// is called when the outcome is durable.
func (h *holder) giveBack(m *message, failed, changed bool, done func(error), now int64, later *callbacks) {
	h.withdraw(m)
	if failed && h.deadLetter != nil {
		m.attempts++
		changed = true
		if uint32(m.attempts) >= h.config.maxDelivery {
			h.moveToDeadLetter(m, tooManyDeliveries(m.attempts), done, later)
			return
		}
	}
	h.enqueue(m, now, later)
	switch {
	case changed && m.place != nowhere:
		h.e.submit(change(h, m, done), later)
	case done != nil:
		later.call(func() { done(nil) })
	}
}

// expireLocks gives back the messages whose locks have ended.
func (h *holder) expireLocks(now int64, later *callbacks) {
	for m := h.locked.head; m != nil && m.lockedUntil <= now; m = h.locked.head {
		h.loseLock(m, now, later)
	}
}

func (h *holder) loseLock(m *message, now int64, later *callbacks) {
	h.counters.LocksLost++
	h.giveBack(m, true, false, nil, now, later)
}

func lockLost() *Error {
	return errorf(MessageLockLost, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.")
}
