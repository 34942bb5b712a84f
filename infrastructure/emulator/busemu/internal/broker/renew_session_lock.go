package broker

import (
	"time"
)

// RenewSessionLock renews a session's lock and returns its new end. It refuses a session
// without receiver, and one that another receiver than by holds (SessionLockLost).
//
// Source: com.microsoft:renew-session-lock, azservicebus internal/mgmt.go.
func (b *Broker) RenewSessionLock(path, session string, by *Receiver) (time.Time, error) {
	h, err := b.holderAt(path)
	if err != nil {
		return time.Time{}, err
	}
	now := b.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.heldSession(session, by.any())
	if err != nil {
		return time.Time{}, err
	}
	h.held.removeIf(s)
	s.lockedUntil = now + h.config.lockDuration
	h.held.insert(s)
	return time.Unix(0, s.lockedUntil), nil
}

// ExpireSession ends the lock of a session now, for tests. The receiver is closed with
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
	s, err := h.heldSession(session, nil)
	if err != nil {
		return err
	}
	now := b.now()
	h.loseSession(s, now, &later)
	h.serve(now, &later)
	h.arm()
	return nil
}
