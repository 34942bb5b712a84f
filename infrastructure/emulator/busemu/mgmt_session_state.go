package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// com.microsoft:get-session-state returns the state of a held session.
//
// Request: session-id.
// Reply: session-state, binary, or null if none is set.
//
// Source: azservicebus internal/mgmt.go.
func mgmtGetSessionState(m *mgmtCall) {
	id, by, ok := m.heldSession()
	if !ok {
		return
	}
	state, err := m.broker().SessionState(m.node.path, *id, by)
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
	id, by, ok := m.heldSession()
	if !ok {
		return
	}
	value, _ := m.body.Get("session-state")
	state, isBinary := value.([]byte)
	if value != nil && !isBinary {
		m.badRequest("session-state")
		return
	}
	if len(state) == 0 {
		state = nil
	}
	m.broker().SetSessionState(m.node.path, *id, by, state, m.done)
}
