package busemu

import (
	"math"
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:receive-by-sequence-number receives deferred messages.
//
// Request: sequence-numbers, array of long; receiver-settle-mode uint, 0 receive and delete, 1
// peek-lock; session-id.
// Reply: messages, list of {message: binary, lock-token: uuid}.
//
// It returns all messages or none: 404 com.microsoft:message-not-found.
//
// Source: azservicebus internal/mgmt.go.
func mgmtReceiveBySequenceNumber(m *mgmtCall) {
	numbers, ok := m.sequenceNumbers()
	if !ok {
		m.badRequest("sequence-numbers")
		return
	}
	session, by, err := m.sessionID()
	if err != nil {
		m.fail(err)
		return
	}
	o := broker.SequenceOptions{Sequences: numbers, Session: session, By: by}
	v, _ := m.body.Get("receiver-settle-mode")
	switch mode, ok := amqp.Integer(v); {
	case ok && mode == 0:
		o.Mode = broker.ReceiveAndDelete
	case ok && mode == 1:
		o.Mode = broker.PeekLock
	default: // a guess could lose the messages
		m.badRequest("receiver-settle-mode")
		return
	}
	m.broker().ReceiveBySequence(m.node.path, o, func(found []broker.Delivery, err error) {
		if err != nil {
			m.fail(err)
			return
		}
		list, err := encodeMessages(found, math.MaxInt)
		if err != nil {
			m.fail(err)
			return
		}
		m.reply(http.StatusOK, amqp.Map{{Key: "messages", Value: list}})
	})
}
