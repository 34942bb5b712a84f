package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// com.microsoft:renew-lock renews the locks of messages.
//
// Request: lock-tokens, array of uuid.
// Reply: expirations, array of timestamp, in the order of the tokens.
//
// It renews all locks or none: 410 com.microsoft:message-lock-lost if one is unknown. It
// refuses messages of a session, because they are locked with the session.
//
// Source: azservicebus internal/mgmt.go.
func mgmtRenewLock(m *mgmtCall) {
	tokens, ok := m.lockTokens()
	if !ok {
		m.badRequest("lock-tokens")
		return
	}
	ends, err := m.broker().RenewLocks(m.node.path, tokens)
	if err != nil {
		m.fail(err)
		return
	}
	expirations := make([]amqp.Timestamp, len(ends))
	for i, end := range ends {
		expirations[i] = amqp.TimestampOf(end)
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "expirations", Value: amqp.TimestampArray(expirations)}})
}
