package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
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
	id, by, ok := m.heldSession()
	if !ok {
		return
	}
	end, err := m.broker().RenewSessionLock(m.node.path, *id, by)
	if err != nil {
		m.fail(err)
		return
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "expiration", Value: amqp.TimestampOf(end)}})
}
