package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// batchDeleteMax is the service's limit of messages deleted by one request.
const batchDeleteMax = 4000

// com.microsoft:batch-delete-messages deletes ready messages, the oldest first.
//
// Request: message-count int; enqueued-time-utc timestamp, only messages enqueued before it;
// session-id.
// Reply: message-count int; 204 if there were none. To purge, a client repeats the request
// until there are none.
//
// It leaves locked, deferred and scheduled messages, and without session-id those of held
// sessions.
//
// Source: azservicebus internal/mgmt.go.
func mgmtBatchDeleteMessages(m *mgmtCall) {
	before, _ := m.body.Get("enqueued-time-utc")
	at, ok := before.(amqp.Timestamp)
	if !ok {
		m.badRequest("enqueued-time-utc")
		return
	}
	count := m.integer("message-count")
	if count == 0 || count > batchDeleteMax {
		m.fail(&broker.Error{Condition: broker.ArgumentError, Description: "The request's field 'message-count' must be an integer from 1 to 4000."})
		return
	}
	session, _, err := m.sessionID()
	if err != nil && session == nil { // otherwise the messages of all sessions would be deleted
		m.fail(err)
		return
	}
	o := broker.DeleteOptions{Count: count, Before: at.Time(), Session: session}
	m.broker().DeleteMessages(m.node.path, o, func(n int, err error) {
		switch {
		case err != nil:
			m.fail(err)
		case n == 0:
			m.reply(http.StatusNoContent, nil)
		default:
			m.reply(http.StatusOK, amqp.Map{{Key: "message-count", Value: int32(n)}})
		}
	})
}
