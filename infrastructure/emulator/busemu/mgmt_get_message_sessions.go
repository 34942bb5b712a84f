package busemu

import (
	"net/http"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

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
