package busemu

import (
	"context"
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Events of the world, for tests. Each returns when it has happened, if it does
// not say otherwise.

// Now is the broker's clock: Options.Now plus what Advance added.
func (s *Server) Now() time.Time { return s.broker.Now() }

// Advance moves the broker's clock forward. Locks, times to live, schedules and
// duplicate windows that end by then have ended when it returns. Shared access
// tokens and idle connections live by the real clock.
func (s *Server) Advance(d time.Duration) { s.broker.Advance(d) }

// SetStatus disables or enables an entity; its links are detached.
func (s *Server) SetStatus(ctx context.Context, entity string, status Status) error {
	return outcome("set the status of", entity, s.broker.SetStatus(ctx, entity, status))
}

// SetQuota overrides the size quota of a queue or topic in bytes, so that sends
// beyond it fail with QuotaExceeded. 0 restores the entity's own.
func (s *Server) SetQuota(entity string, bytes int64) error {
	return outcome("set the quota of", entity, s.broker.SetQuota(entity, bytes))
}

// ExpireSession lets the lock of a session expire now. Its receiver's link is
// detached with com.microsoft:session-lock-lost and the messages it had count
// as failed deliveries.
func (s *Server) ExpireSession(entity, session string) error {
	return outcome("expire a session of", entity, s.broker.ExpireSession(entity, session))
}

// ExpireLock lets the lock of a message expire now. The token is the SDK's
// ReceivedMessage.LockToken.
func (s *Server) ExpireLock(entity string, token [16]byte) error {
	return outcome("expire a lock of", entity, s.broker.ExpireLock(entity, broker.LockToken(token)))
}

// Detach detaches all links of an entity with an error.
func (s *Server) Detach(entity string, reason *Error) error {
	return outcome("detach the links of", entity, s.broker.DetachAll(entity, wire(reason)))
}

// ExpireTokens lets every shared access token that a client has put expire now.
// Links that lived by one are detached with amqp:unauthorized-access, which the
// SDK returns at once; until a new token is put nothing can be attached. To have
// new tokens refused too, Fail OpPutToken with UnauthorizedAccess. It does not
// wait for the connections.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.post(event{fn: c.forgetGrants})
	}
}

// Disconnect cuts all connections as a broken network does. It does not wait for
// them.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.post(event{fn: c.hangUp})
	}
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func outcome(what, entity string, err error) error {
	if err != nil {
		return fmt.Errorf("busemu: %s %s: %w", what, entity, err)
	}
	return nil
}
