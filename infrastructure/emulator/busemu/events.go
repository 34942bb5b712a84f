package busemu

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Events for tests. Each method returns when the event has happened, unless it says otherwise.

// Now returns the broker's time: Options.Now plus what Advance added.
func (s *Server) Now() time.Time { return s.broker.Now() }

// Advance moves the broker's clock forward. Locks, times to live, schedules and duplicate
// windows that end by then have ended when it returns. Shared access tokens and idle
// connections use the real clock.
func (s *Server) Advance(d time.Duration) { s.broker.Advance(d) }

// SetStatus disables or enables an entity and detaches its links.
func (s *Server) SetStatus(ctx context.Context, entity string, status Status) error {
	return outcome("set the status of", entity, s.broker.SetStatus(ctx, entity, status))
}

// SetQuota overrides the size quota of a queue or topic in bytes, so that sends
// beyond it fail with QuotaExceeded. 0 restores the entity's own.
func (s *Server) SetQuota(entity string, bytes int64) error {
	return outcome("set the quota of", entity, s.broker.SetQuota(entity, bytes))
}

// ExpireSession ends the lock of a session now. Its receiver's link is detached with
// com.microsoft:session-lock-lost, and its messages count as failed deliveries.
func (s *Server) ExpireSession(entity, session string) error {
	return outcome("expire a session of", entity, s.broker.ExpireSession(entity, session))
}

// ExpireLock ends the lock of a message now. The token is the SDK's ReceivedMessage.LockToken.
func (s *Server) ExpireLock(entity string, token [16]byte) error {
	return outcome("expire a lock of", entity, s.broker.ExpireLock(entity, broker.LockToken(token)))
}

// Detach detaches all links of an entity with an error. Default: DetachForced.
func (s *Server) Detach(entity string, reason *Error) error {
	reason = cmp.Or(reason, &Error{Condition: DetachForced})
	return outcome("detach the links of", entity, s.broker.DetachAll(entity, wire(reason)))
}

// ExpireTokens ends all tokens that clients have put. Their links are detached with
// amqp:unauthorized-access, which the SDK returns at once; nothing can be attached until a new
// token is put. To refuse new tokens too, use Control with OpPutToken and UnauthorizedAccess.
// ExpireTokens does not wait for the connections.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.post(event{fn: c.forgetGrants})
	}
}

// Disconnect cuts all connections, like a broken network. It does not wait for them.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.post(event{fn: c.hangUp})
	}
}

// Connections returns the number of open connections.
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

// Control calls hook for every call of an operation, OpAny for all. Hooks run in the order in
// which they were added; the first that returns a fault decides. remove removes the hook.
func (s *Server) Control(op Operation, hook Hook) (remove func()) {
	return s.hooks.Add(When(Call{Operation: op}, hook))
}
