package subscriber

import (
	"context"
	"errors"
)

// Session is the session of the broker that an event belongs to, while its handler runs.
type Session struct {
	id   string
	link *link
}

type sessionKey struct{}

// SessionOf returns the session of the event whose handler has this context, nil without a
// SessionProcessor.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

var errNoSession = errors.New("subscriber: the event has no session: it was not received by a SessionProcessor")

// ID is the session id: the key of its events.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// State returns what was stored for the session by SetState, nil if nothing was. The
// broker keeps it, independent of the messages, until it is overwritten.
func (s *Session) State(ctx context.Context) ([]byte, error) {
	if s == nil {
		return nil, errNoSession
	}
	answer, err := s.link.conn.manage(ctx, s.link.LinkName(), "get-session-state", map[string]any{"session-id": s.id})
	if err != nil {
		return nil, err
	}
	state, _ := answer["session-state"].([]byte)
	return state, nil
}

// SetState stores a state for the session, up to the size of a message. An empty one
// takes it away.
func (s *Session) SetState(ctx context.Context, state []byte) error {
	if s == nil {
		return errNoSession
	}
	body := map[string]any{"session-id": s.id, "session-state": state}
	if len(state) == 0 {
		body["session-state"] = nil
	}
	_, err := s.link.conn.manage(ctx, s.link.LinkName(), "set-session-state", body)
	return err
}

func (s *Session) renewLock(ctx context.Context) error {
	_, err := s.link.conn.manage(ctx, s.link.LinkName(), "renew-session-lock", map[string]any{"session-id": s.id})
	return err
}
