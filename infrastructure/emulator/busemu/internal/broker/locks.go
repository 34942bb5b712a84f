package broker

import (
	"math/rand/v2"
	"time"
)

// lockedList is a list of locked messages by the end of their locks. Locks of one
// holder last equally long, so a message almost always goes to the end.
type lockedList struct{ head, tail *message }

func (l *lockedList) insert(m *message) {
	after := l.tail
	for after != nil && after.lockedUntil > m.lockedUntil {
		after = after.prev
	}
	m.prev = after
	if after == nil {
		m.next, l.head = l.head, m
	} else {
		m.next, after.next = after.next, m
	}
	if m.next == nil {
		l.tail = m
	} else {
		m.next.prev = m
	}
}

func (l *lockedList) remove(m *message) {
	if m.prev == nil {
		l.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		l.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next = nil, nil
}

// lock locks m, which is nowhere, and returns it as its receiver sees it.
func (h *holder) lock(m *message, now int64) Delivery {
	m.place = inLocked
	for m.nonce = 0; m.nonce == 0; {
		m.nonce = rand.Uint64()
	}
	h.inFlight++
	d := m.delivery()
	d.LockToken = m.token()
	if s := m.session; s != nil {
		s.locked.insert(m) // all zero: order of delivery
		d.LockedUntil = time.Unix(0, s.lockedUntil)
		return d
	}
	m.lockedUntil = now + h.config.lockDuration
	h.locked.insert(m)
	d.LockedUntil = time.Unix(0, m.lockedUntil)
	return d
}

// giveBack returns a locked message to its place. A failed delivery is counted, and
// the message dead-lettered if that was the last one it was allowed. changed says that
// the message's record has to change in any case. done, if not nil, is called when the
// outcome is durable.
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
		h.b.submit(h.change(m, done), later)
	case done != nil:
		later.call(func() { done(nil) })
	}
}

// expireLocks gives back messages whose locks have ended.
func (h *holder) expireLocks(now int64, later *callbacks) {
	for m := h.locked.head; m != nil && m.lockedUntil <= now; m = h.locked.head {
		h.loseLock(m, now, later)
	}
}

func (h *holder) loseLock(m *message, now int64, later *callbacks) {
	h.counters.LocksLost++
	h.giveBack(m, true, false, nil, now, later)
}

// RenewLocks renews the locks of messages (not of sessions) and returns their new
// ends, or renews none and fails with MessageLockLost.
func (b *Broker) RenewLocks(path string, tokens []LockToken) ([]time.Time, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return nil, err
	}
	now := b.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	messages := make([]*message, len(tokens))
	for i, t := range tokens {
		switch messages[i] = h.find(t); {
		case messages[i] == nil:
			return nil, lockLost()
		case messages[i].session != nil:
			return nil, errorf(NotAllowed, "A message of a session is locked with its session: renew the lock of session '%s'.", messages[i].body.session)
		}
	}
	ends := make([]time.Time, len(tokens))
	for i, m := range messages {
		h.locked.remove(m)
		m.lockedUntil = now + h.config.lockDuration
		h.locked.insert(m)
		ends[i] = time.Unix(0, m.lockedUntil)
	}
	return ends, nil
}

// ExpireLock expires the lock of a message now.
func (b *Broker) ExpireLock(path string, token LockToken) error {
	h, err := b.holderAt(path)
	if err != nil {
		return err
	}
	var later callbacks
	defer later.run()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.find(token)
	if m == nil {
		return lockLost()
	}
	now := b.now()
	h.loseLock(m, now, &later)
	h.serve(now, &later)
	h.arm()
	return nil
}

func lockLost() *Error {
	return errorf(MessageLockLost, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.")
}
