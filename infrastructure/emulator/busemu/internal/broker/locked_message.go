package broker

import (
	"time"
)

// Settle settles a message by its lock token, without its receiver.
func (b *Broker) Settle(path string, token LockToken, o Outcome, done func(error)) {
	h, err := b.holderAt(path)
	if err != nil {
		done(err)
		return
	}
	h.settle(token, o, done)
}

// RenewLocks renews the locks of messages without session and returns their new ends. If one
// lock is lost it renews none (MessageLockLost). It refuses messages of a session, which is
// locked as a whole.
//
// Source: com.microsoft:renew-lock, azservicebus internal/mgmt.go.
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

// ExpireLock ends the lock of a message now, for tests.
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
