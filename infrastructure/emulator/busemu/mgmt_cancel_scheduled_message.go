package busemu

// com.microsoft:cancel-scheduled-message removes scheduled messages.
//
// Request: sequence-numbers, array of long.
// Reply: empty.
//
// It removes all messages or none: 404 com.microsoft:message-not-found.
//
// Source: azservicebus internal/mgmt.go.
func mgmtCancelScheduledMessage(m *mgmtCall) {
	numbers, ok := m.sequenceNumbers()
	if !ok {
		m.badRequest("sequence-numbers")
		return
	}
	m.broker().CancelScheduled(m.node.path, numbers, m.done)
}
