package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:peek-message returns messages without locking them.
//
// Request: from-sequence-number long, message-count int; session-id string (the Go SDK names
// the session's link instead).
// Reply: messages, list of {message: binary}; 204 if there are none.
//
// It includes locked, deferred and scheduled messages. It returns fewer messages than
// requested if the reply would exceed 1 MB.
//
// Source: azservicebus internal/mgmt.go.
func mgmtPeekMessage(m *mgmtCall) {
	v, _ := m.body.Get("from-sequence-number")
	from, ok := amqp.Integer(v)
	if !ok {
		m.badRequest("from-sequence-number")
		return
	}
	session, _, err := m.sessionID()
	if err != nil && session == nil { // a peek of a named session needs no lock
		m.fail(err)
		return
	}
	found, err := m.broker().Peek(m.node.path, broker.PeekOptions{
		From: from, Count: min(max(m.integer("message-count"), 1), maxPeek), Session: session,
	})
	if err != nil {
		m.fail(err)
		return
	}
	if len(found) == 0 {
		m.reply(http.StatusNoContent, nil)
		return
	}
	list, err := encodeMessages(found, maxReplySize)
	if err != nil {
		m.fail(err)
		return
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "messages", Value: list}})
}

const (
	maxPeek      = 10000
	maxReplySize = 1 << 20
)

// encodeMessages encodes messages for a reply's body: at least one, and as many as fit.
func encodeMessages(deliveries []broker.Delivery, limit int) (amqp.List, error) {
	var list amqp.List
	size := 0
	for i := range deliveries {
		d := &deliveries[i]
		b, err := appendDelivery(nil, d, true)
		if err != nil {
			return nil, err
		}
		if size += len(b); size > limit && len(list) > 0 {
			break
		}
		entry := amqp.Map{{Key: "message", Value: b}}
		if d.LockToken != (broker.LockToken{}) {
			entry = append(entry, amqp.MapEntry{Key: "lock-token", Value: amqp.UUID(d.LockToken)})
		}
		list = append(list, entry)
	}
	return list, nil
}
