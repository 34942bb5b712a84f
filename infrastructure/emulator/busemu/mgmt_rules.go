package busemu

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Rule operations on a subscription's $management, used by the JavaScript and .NET rule
// managers. The Go SDK uses the admin API.
//
// Descriptors of the described lists in replies (known to rhea and the .NET SDK).
const (
	ruleDescriptionCode   = uint64(0x0000013700000004)
	ruleActionEmptyCode   = uint64(0x0000013700000005)
	ruleActionSQLCode     = uint64(0x0000013700000006)
	filterSQLCode         = uint64(0x000001370000006)
	filterTrueCode        = uint64(0x000001370000007)
	filterFalseCode       = uint64(0x000001370000008)
	filterCorrelationCode = uint64(0x000001370000009)
)

// subscriptionOf splits topic/Subscriptions/name.
func subscriptionOf(path string) (topic, name string, ok bool) {
	lower := strings.ToLower(path)
	const infix = "/subscriptions/"
	i := strings.Index(lower, infix)
	if i < 0 {
		return "", "", false
	}
	name = path[i+len(infix):]
	return path[:i], name, !strings.Contains(name, "/")
}

func (m *mgmtCall) subscription() (topic, name string, ok bool) {
	topic, name, ok = subscriptionOf(m.node.path)
	if !ok {
		m.fail(&broker.Error{Condition: broker.NotAllowed, Description: "Rules belong to subscriptions; '" + m.node.path + "' is none."})
	}
	return topic, name, ok
}

// background runs a call that waits for the disk outside of the connection's loop.
func (m *mgmtCall) background(run func(ctx context.Context)) {
	m.node.ns.background(run)
}

// com.microsoft:add-rule adds a rule.
//
// Request: rule-name; rule-description: map of sql-filter {expression}, correlation-filter
// {correlation-id, message-id, to, reply-to, label, session-id, reply-to-session-id,
// content-type, properties}, true-filter or false-filter; sql-rule-action {expression}.
// Reply: empty.
//
// It refuses a name that exists, and filters and actions that do not parse.
//
// Source: the JavaScript and .NET rule managers.
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

// com.microsoft:remove-rule removes a rule.
//
// Request: rule-name.
// Reply: empty; 404 if there is no such rule.
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

// com.microsoft:enumerate-rules lists rules.
//
// Request: top int, skip int.
// Reply: rules, list of {rule-description: described list of filter, action, name,
// created-at}; 204 if there are none.
func mgmtEnumerateRules(m *mgmtCall) {
	topic, sub, ok := m.subscription()
	if !ok {
		return
	}
	info, err := m.broker().Subscription(topic, sub)
	if err != nil {
		m.fail(err)
		return
	}
	rules := info.Rules[min(m.integer("skip"), len(info.Rules)):]
	if top := m.integer("top"); top > 0 {
		rules = rules[:min(top, len(rules))]
	}
	if len(rules) == 0 {
		m.reply(http.StatusNoContent, nil)
		return
	}
	list := make(amqp.List, len(rules))
	for i, r := range rules {
		list[i] = amqp.Map{{Key: "rule-description", Value: amqp.Described{
			Descriptor: ruleDescriptionCode,
			Value:      amqp.List{describeFilter(&r.Filter), describeAction(r.Action), r.Name, amqp.TimestampOf(r.CreatedAt)},
		}}}
	}
	m.reply(http.StatusOK, amqp.Map{{Key: "rules", Value: list}})
}

func describeFilter(f *sqlfilter.Filter) amqp.Described {
	switch f.Kind {
	case sqlfilter.KindFalse:
		return amqp.Described{Descriptor: filterFalseCode, Value: amqp.List{}}
	case sqlfilter.KindSQL:
		return amqp.Described{Descriptor: filterSQLCode, Value: amqp.List{f.Expression, int32(20)}}
	case sqlfilter.KindCorrelation:
		c := &f.Correlation
		fields := amqp.List{}
		for _, s := range []string{c.CorrelationID, c.MessageID, c.To, c.ReplyTo, c.Subject, c.SessionID, c.ReplyToSessionID, c.ContentType} {
			if s == "" {
				fields = append(fields, nil)
			} else {
				fields = append(fields, s)
			}
		}
		properties := amqp.Map{}
		for name, v := range c.Properties {
			if t, ok := v.(time.Time); ok {
				v = amqp.TimestampOf(t)
			}
			properties = append(properties, amqp.MapEntry{Key: name, Value: v})
		}
		return amqp.Described{Descriptor: filterCorrelationCode, Value: append(fields, properties)}
	default:
		return amqp.Described{Descriptor: filterTrueCode, Value: amqp.List{}}
	}
}

func describeAction(a *sqlfilter.Action) amqp.Described {
	if a == nil {
		return amqp.Described{Descriptor: ruleActionEmptyCode, Value: amqp.List{}}
	}
	return amqp.Described{Descriptor: ruleActionSQLCode, Value: amqp.List{a.Expression, int32(20)}}
}
