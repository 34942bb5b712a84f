package busemu

import (
	"context"
	"fmt"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// com.microsoft:add-rule adds a rule.
//
// Request: rule-name; rule-description: map of sql-filter {expression}, correlation-filter
// {correlation-id, message-id, to, reply-to, label, session-id, reply-to-session-id,
// content-type, properties}, true-filter or false-filter; sql-rule-action {expression}.
// Reply: empty.
//
// It refuses a name that exists, and filters and actions that do not parse.
//
// Source: the JavaScript and .NET rule managers. The Go SDK uses the admin API instead.
func mgmtAddRule(m *mgmtCall) {
	topic, sub, ok := m.subscription()
	if !ok {
		return
	}
	name, ok := m.body.String("rule-name")
	if !ok {
		m.badRequest("rule-name")
		return
	}
	v, _ := m.body.Get("rule-description")
	description, ok := v.(amqp.Map)
	if !ok {
		m.badRequest("rule-description")
		return
	}
	rule, err := readRule(name, description)
	if err != nil {
		m.fail(err)
		return
	}
	m.background(func(ctx context.Context) {
		_, err := m.broker().CreateRule(ctx, topic, sub, rule)
		m.done(err)
	})
}

func readRule(name string, description amqp.Map) (broker.Rule, error) {
	rule := broker.Rule{Name: name}
	for _, e := range description {
		key, _ := amqp.Text(e.Key)
		value, _ := e.Value.(amqp.Map)
		switch key {
		case "sql-filter":
			rule.Filter.Kind = sqlfilter.KindSQL
			rule.Filter.Expression, _ = value.String("expression")
		case "true-filter":
			rule.Filter.Kind = sqlfilter.KindTrue
		case "false-filter":
			rule.Filter.Kind = sqlfilter.KindFalse
		case "correlation-filter":
			rule.Filter.Kind = sqlfilter.KindCorrelation
			rule.Filter.Correlation = readCorrelation(value)
		case "sql-rule-action":
			if expression, ok := value.String("expression"); ok && expression != "" {
				rule.Action = &sqlfilter.Action{Expression: expression}
			}
		case "rule-name":
		default:
			return rule, &broker.Error{Condition: broker.NotImplemented, Description: fmt.Sprintf("The rule's '%s' is not supported by this emulator.", key)}
		}
	}
	if rule.Filter.Kind == "" {
		rule.Filter.Kind = sqlfilter.KindTrue
	}
	return rule, nil
}

func readCorrelation(m amqp.Map) sqlfilter.Fields {
	var f sqlfilter.Fields
	for key, field := range map[string]*string{
		"correlation-id": &f.CorrelationID, "message-id": &f.MessageID, "to": &f.To, "reply-to": &f.ReplyTo,
		"label": &f.Subject, "session-id": &f.SessionID, "reply-to-session-id": &f.ReplyToSessionID, "content-type": &f.ContentType,
	} {
		*field, _ = m.String(key)
	}
	v, _ := m.Get("properties")
	properties, _ := v.(amqp.Map)
	for _, e := range properties {
		if name, ok := amqp.Text(e.Key); ok {
			if f.Properties == nil {
				f.Properties = make(map[string]any, len(properties))
			}
			f.Properties[name] = filterValue(e.Value)
			if id, ok := f.Properties[name].(sqlfilter.UUID); ok {
				f.Properties[name] = id.String() // equal in comparisons, and can be stored
			}
		}
	}
	return f
}
