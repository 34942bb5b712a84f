package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// com.microsoft:schedule-message sends messages for a later time.
//
// Request: messages, list of {message-id, message binary, session-id?, partition-key?,
// via-partition-key?}.
// Reply: sequence-numbers, array of long.
//
// It reads only the encoded message, not the ids beside it. The time is the message's
// annotation x-opt-scheduled-enqueue-time. It accepts all messages or none.
//
// Source: azservicebus internal/mgmt.go.
func mgmtScheduleMessage(m *mgmtCall) {
	v, _ := m.body.Get("messages")
	entries, ok := amqp.Elements(v)
	if !ok || len(entries) == 0 {
		m.badRequest("messages")
		return
	}
	info, err := m.broker().Lookup(m.node.path)
	if err != nil {
		m.fail(err)
		return
	}
	batch := make([]broker.Message, len(entries))
	for i, e := range entries {
		entry, _ := e.(amqp.Map)
		v, _ := entry.Get("message")
		encoded, ok := v.([]byte)
		if !ok {
			m.badRequest("messages")
			return
		}
		one, err := readMessages(encoded, 0, &info)
		if err != nil {
			m.fail(err)
			return
		}
		batch[i] = one[0]
	}
	m.broker().Schedule(m.node.path, batch, func(numbers []int64, err error) {
		if err != nil {
			m.fail(err)
			return
		}
		m.reply(http.StatusOK, amqp.Map{{Key: "sequence-numbers", Value: amqp.LongArray(numbers)}})
	})
}
