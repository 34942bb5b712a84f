package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// com.microsoft:renew-lock
//
// Request: lock-tokens, array of uuid. Reply: expirations, array of timestamp, in
// the order of the tokens.
//
// Behaviour: all or none; 410 com.microsoft:message-lock-lost if one is unknown.
// Messages of a session are locked by their session and cannot be renewed here.
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
