package broker

import (
	"time"
)

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
