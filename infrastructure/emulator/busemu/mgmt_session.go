package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:renew-session-lock
//
// Request: session-id. Reply: expiration, timestamp.
//
// Behaviour: 410 com.microsoft:session-lock-lost if nobody holds the session.
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

// com.microsoft:get-session-state
//
// Request: session-id. Reply: session-state, binary, or null if none is set.
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

// com.microsoft:set-session-state
//
// Request: session-id; session-state, binary, or null to clear it (empty is null
// too: the Go SDK cannot send a null). Reply: empty.
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

// sessionsWithMessages is the last-updated-time that asks for sessions with
// messages or state rather than for those whose state was set after a time: the
// year 10000 (a day less, for clamping peers), which .NET cannot hold.
const sessionsWithMessages amqp.Timestamp = 253402300800000 - 24*60*60*1000

// com.microsoft:get-message-sessions
//
// Request: last-updated-time timestamp, skip int, top int. Reply: skip,
// sessions-ids, array of string; 204 if there are none.
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
