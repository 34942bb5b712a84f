package busemu

import (
	"net/http"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// Descriptors of the described lists in the reply (known to rhea and the .NET SDK).
const (
	ruleDescriptionCode   = uint64(0x0000013700000004)
	ruleActionEmptyCode   = uint64(0x0000013700000005)
	ruleActionSQLCode     = uint64(0x0000013700000006)
	filterSQLCode         = uint64(0x000001370000006)
	filterTrueCode        = uint64(0x000001370000007)
	filterFalseCode       = uint64(0x000001370000008)
	filterCorrelationCode = uint64(0x000001370000009)
)

// com.microsoft:enumerate-rules lists rules.
//
// Request: top int, skip int.
// Reply: rules, list of {rule-description: described list of filter, action, name,
// created-at}; 204 if there are none.
//
// Source: the JavaScript and .NET rule managers. The Go SDK uses the admin API instead.
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
