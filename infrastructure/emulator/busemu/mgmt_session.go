package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:renew-session-lock renews the lock of a session.
//
// Request: session-id.
// Reply: expiration, timestamp.
//
// It refuses a session without receiver: 410 com.microsoft:session-lock-lost.
//
// Source: azservicebus internal/mgmt.go.
func mgmtRenewSessionLock(m *mgmtCall) {
	id := m.sessionID()
	if id == nil {
		m.badRequest("session-id")
		return
	}
	end, err := m.broker().RenewSessionLock(m.node.path, *id)
	if err != nil {
		m.fail(err)
		return
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "expiration", Value: amqp.TimestampOf(end)}})
}

// com.microsoft:get-session-state returns the state of a held session.
//
// Request: session-id.
// Reply: session-state, binary, or null if none is set.
//
// Source: azservicebus internal/mgmt.go.
func mgmtGetSessionState(m *mgmtCall) {
	id := m.sessionID()
	if id == nil {
		m.badRequest("session-id")
		return
	}
	state, err := m.broker().SessionState(m.node.path, *id)
	if err != nil {
		m.fail(err)
		return
	}
	var value any
	if state != nil {
		value = state
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "session-state", Value: value}})
}

// com.microsoft:set-session-state sets the state of a held session.
//
// Request: session-id; session-state, binary, or null to clear it (an empty one clears it too,
// because the Go SDK cannot send a null).
// Reply: empty.
//
// Source: azservicebus internal/mgmt.go.
func mgmtSetSessionState(m *mgmtCall) {
	id := m.sessionID()
	if id == nil {
		m.badRequest("session-id")
		return
	}
	value, _ := m.body.Get("session-state")
	state, ok := value.([]byte)
	if value != nil && !ok {
		m.badRequest("session-state")
		return
	}
	if len(state) == 0 {
		state = nil
	}
	m.broker().SetSessionState(m.node.path, *id, state, m.done)
}

// sessionsWithMessages as last-updated-time requests the sessions with messages or state,
// instead of those whose state was set after a time. It is the year 10000, which .NET cannot
// represent, less a day for clamping peers.
const sessionsWithMessages amqp.Timestamp = 253402300800000 - 24*60*60*1000

// com.microsoft:get-message-sessions lists sessions.
//
// Request: last-updated-time timestamp, skip int, top int.
// Reply: skip, sessions-ids, array of string; 204 if there are none.
//
// Source: the service's protocol guide.
func mgmtGetMessageSessions(m *mgmtCall) {
	v, _ := m.body.Get("last-updated-time")
	after, ok := v.(amqp.Timestamp)
	if !ok {
		m.badRequest("last-updated-time")
		return
	}
	skip, top := m.integer("skip"), m.integer("top")
	o := broker.ListOptions{Skip: skip, Top: top}
	if after < sessionsWithMessages {
		o.UpdatedAfter = after.Time()
	}
	ids, err := m.broker().ListSessions(m.node.path, o)
	if err != nil {
		m.fail(err)
		return
	}
	if len(ids) == 0 {
		m.reply(http.StatusNoContent, nil)
		return
	}
	m.reply(http.StatusOK, amqp.Map{
		{Key: "skip", Value: int32(skip + len(ids))},
		{Key: "sessions-ids", Value: amqp.StringArray(ids)},
	})
}

// integer reads a field of any integer type; 0 if it is missing or negative.
func (m *mgmtCall) integer(field string) int {
	v, _ := m.body.Get(field)
	n, _ := amqp.Integer(v)
	return int(max(n, 0))
}
