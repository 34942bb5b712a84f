package subscriber

import (
	"context"
	"errors"
)

// Session is the broker session of an event. It may only be used while the handler runs.
type Session struct {
	id   string
	link *link
}

type sessionKey struct{}

// SessionOf returns the session of the event whose handler has this context, or nil if the event was not
// received by a SessionProcessor.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

var errNoSession = errors.New("subscriber: the event has no session: receive it with a SessionProcessor")

// ID returns the session id, which is the key of its events.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// State returns the state of the session that SetState has stored, or nil. The broker keeps it until it is
// overwritten, even if the session has no messages.
func (s *Session) State(ctx context.Context) ([]byte, error) {
	if s == nil {
		return nil, errNoSession
	}
	response, err := s.link.conn.manage(ctx, s.link.LinkName(), "get-session-state", map[string]any{"session-id": s.id})
	if err != nil {
		return nil, err
	}
	state, _ := response["session-state"].([]byte)
	return state, nil
}

// SetState stores the state of the session. It may be as large as a message. An empty state deletes it.
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
