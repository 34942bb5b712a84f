package admin

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// The XML form of rules: filters, actions and their parameters.

// readRuleDescription reads a RuleDescription or a DefaultRuleDescription.
func readRuleDescription(d *xmlNode, name string) (broker.Rule, error) {
	rule := broker.Rule{Name: name, Filter: sqlfilter.Filter{Kind: sqlfilter.KindTrue}}
	if v, ok := d.value("Name"); ok && v != "" {
		rule.Name = v
	}
	rule.Opaque = opaque(d, "Filter", "Action")
	if n := d.child("Filter"); n != nil {
		var err error
		if rule.Filter, err = readFilter(n); err != nil {
			return rule, err
		}
	}
	if n := d.child("Action"); n != nil && n.instanceType() != "EmptyRuleAction" {
		action := &sqlfilter.Action{}
		action.Expression, _ = n.value("SqlExpression")
		var err error
		if action.Parameters, err = readParameters(n.child("Parameters")); err != nil {
			return rule, err
		}
		rule.Action = action
	}
	return rule, nil
}

func readFilter(n *xmlNode) (sqlfilter.Filter, error) {
	switch n.instanceType() {
	case "TrueFilter":
		return sqlfilter.Filter{Kind: sqlfilter.KindTrue}, nil
	case "FalseFilter":
		return sqlfilter.Filter{Kind: sqlfilter.KindFalse}, nil
	case "SqlFilter":
		f := sqlfilter.Filter{Kind: sqlfilter.KindSQL}
		f.Expression, _ = n.value("SqlExpression")
		var err error
		f.Parameters, err = readParameters(n.child("Parameters"))
		return f, err
	case "CorrelationFilter":
		f := sqlfilter.Filter{Kind: sqlfilter.KindCorrelation}
		c := fieldReader{node: n}
		c.string("CorrelationId", &f.Correlation.CorrelationID)
		c.string("MessageId", &f.Correlation.MessageID)
		c.string("To", &f.Correlation.To)
		c.string("ReplyTo", &f.Correlation.ReplyTo)
		c.string("Label", &f.Correlation.Subject)
		c.string("SessionId", &f.Correlation.SessionID)
		c.string("ReplyToSessionId", &f.Correlation.ReplyToSessionID)
		c.string("ContentType", &f.Correlation.ContentType)
		properties, err := readParameters(n.child("Properties"))
		for _, p := range properties {
			if f.Correlation.Properties == nil {
				f.Correlation.Properties = make(map[string]any, len(properties))
			}
			f.Correlation.Properties[p.Name] = p.Value
		}
		return f, err
	default:
		return sqlfilter.Filter{Kind: sqlfilter.KindUnknown}, nil
	}
}

// readParameters reads a list of KeyValueOfstringanyType.
func readParameters(n *xmlNode) ([]sqlfilter.Parameter, error) {
	if n == nil {
		return nil, nil
	}
	var out []sqlfilter.Parameter
	for _, pair := range n.children {
		key, value := pair.child("Key"), pair.child("Value")
		if key == nil || value == nil {
			return nil, &broker.Error{Condition: broker.ArgumentError, Description: "A parameter needs a Key and a Value."}
		}
		v, err := readParameterValue(value)
		if err != nil {
			return nil, &broker.Error{Condition: broker.ArgumentError, Description: "The value of parameter '" + key.text + "': " + err.Error()}
		}
		out = append(out, sqlfilter.Parameter{Name: key.text, Value: v})
	}
	return out, nil
}

func readParameterValue(n *xmlNode) (any, error) {
	text := n.text
	switch kind := n.instanceType(); kind {
	case "string", "":
		return text, nil
	case "boolean":
		return strconv.ParseBool(text)
	case "int", "long", "short", "byte":
		return strconv.ParseInt(text, 10, 64)
	case "double", "float", "decimal":
		return strconv.ParseFloat(text, 64)
	case "dateTime":
		if t, err := time.Parse("2006-01-02T15:04:05", text); err == nil {
			return t, nil // Python's SDK sends it without a zone
		}
		return time.Parse(time.RFC3339Nano, text)
	case "duration":
		return text, nil
	default:
		return nil, errors.New("type " + kind + " is not supported by this emulator")
	}
}

func writeRule(b *bytes.Buffer, r *broker.Rule) {
	defer description(b, "RuleDescription")()
	if raw := opaqueChild(r.Opaque, "Filter"); raw != "" {
		b.WriteString(raw)
	} else {
		writeFilter(b, &r.Filter)
	}
	if raw := opaqueChild(r.Opaque, "Action"); raw != "" {
		b.WriteString(raw)
	} else {
		writeAction(b, r.Action)
	}
	element(b, "CreatedAt", formatTime(r.CreatedAt))
	element(b, "Name", r.Name)
}

// writeFilter writes the filter of a rule that was not created by the admin API.
func writeFilter(b *bytes.Buffer, f *sqlfilter.Filter) {
	open := func(kind string) { b.WriteString(`<Filter i:type="` + kind + `">`) }
	switch f.Kind {
	case sqlfilter.KindTrue, sqlfilter.KindFalse:
		open(string(f.Kind) + "Filter")
		element(b, "SqlExpression", map[sqlfilter.Kind]string{sqlfilter.KindTrue: "1=1", sqlfilter.KindFalse: "1=0"}[f.Kind])
		element(b, "CompatibilityLevel", "20")
	case sqlfilter.KindCorrelation:
		open("CorrelationFilter")
		c := &f.Correlation
		elementIf(b, "CorrelationId", c.CorrelationID)
		elementIf(b, "MessageId", c.MessageID)
		elementIf(b, "To", c.To)
		elementIf(b, "ReplyTo", c.ReplyTo)
		elementIf(b, "Label", c.Subject)
		elementIf(b, "SessionId", c.SessionID)
		elementIf(b, "ReplyToSessionId", c.ReplyToSessionID)
		elementIf(b, "ContentType", c.ContentType)
		var properties []sqlfilter.Parameter
		for name, v := range c.Properties {
			properties = append(properties, sqlfilter.Parameter{Name: name, Value: v})
		}
		writeParameters(b, "Properties", properties)
	default:
		open("SqlFilter")
		element(b, "SqlExpression", f.Expression)
		element(b, "CompatibilityLevel", "20")
		writeParameters(b, "Parameters", f.Parameters)
	}
	b.WriteString("</Filter>")
}

func writeAction(b *bytes.Buffer, a *sqlfilter.Action) {
	if a == nil {
		b.WriteString(`<Action i:type="EmptyRuleAction"></Action>`)
		return
	}
	b.WriteString(`<Action i:type="SqlRuleAction">`)
	element(b, "SqlExpression", a.Expression)
	element(b, "CompatibilityLevel", "20")
	writeParameters(b, "Parameters", a.Parameters)
	b.WriteString("</Action>")
}

func writeParameters(b *bytes.Buffer, name string, list []sqlfilter.Parameter) {
	if len(list) == 0 {
		return
	}
	b.WriteString("<" + name + ">")
	for _, p := range list {
		kind, text := "string", ""
		switch v := p.Value.(type) {
		case string:
			text = v
		case bool:
			kind, text = "boolean", strconv.FormatBool(v)
		case int64:
			kind, text = "int", strconv.FormatInt(v, 10)
		case float64:
			kind, text = "double", strconv.FormatFloat(v, 'g', -1, 64)
		case time.Time:
			kind, text = "dateTime", v.UTC().Format(time.RFC3339Nano)
		}
		b.WriteString("<KeyValueOfstringanyType>")
		element(b, "Key", p.Name)
		b.WriteString(`<Value i:type="d6p1:` + kind + `" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">`)
		escape(b, text)
		b.WriteString("</Value></KeyValueOfstringanyType>")
	}
	b.WriteString("</" + name + ">")
}
