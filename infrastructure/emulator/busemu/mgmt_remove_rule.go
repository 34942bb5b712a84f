package busemu

import (
	"context"
)

// com.microsoft:remove-rule removes a rule.
//
// Request: rule-name.
// Reply: empty; 404 if there is no such rule.
//
// Source: the JavaScript and .NET rule managers. The Go SDK uses the admin API instead.
func mgmtRemoveRule(m *mgmtCall) {
	topic, sub, ok := m.subscription()
	if !ok {
		return
	}
	name, ok := m.body.String("rule-name")
	if !ok {
		m.badRequest("rule-name")
		return
	}
	m.background(func(ctx context.Context) {
		m.done(m.broker().DeleteRule(ctx, topic, sub, name))
	})
}
