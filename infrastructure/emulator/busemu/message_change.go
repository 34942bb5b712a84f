package busemu

import (
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

// applyChanges writes the changes of an SQL action into a copy of a message. It writes a text
// of the properties section only if the text differs, so that a message-id which is not a
// string keeps its type.
func applyChanges(payload []byte, f *sqlfilter.Fields, changes []sqlfilter.Change) ([]byte, error) {
	sections, err := amqp.SplitMessage(payload)
	if err != nil {
		return nil, err
	}
	props, err := amqp.DecodeProperties(sections.Properties)
	if err != nil {
		return nil, err
	}
	id, err := messageID(&props)
	if err != nil {
		return nil, err
	}
	for i, text := range map[amqp.Property]string{
		amqp.MessageID: f.MessageID, amqp.CorrelationID: f.CorrelationID, amqp.To: f.To, amqp.ReplyTo: f.ReplyTo, amqp.Subject: f.Subject,
		amqp.GroupID: f.SessionID, amqp.ReplyToGroupID: f.ReplyToSessionID, amqp.ContentType: f.ContentType,
	} {
		before, _ := props.Text(i)
		if i == amqp.MessageID {
			before = id
		}
		switch {
		case before == text:
		case text == "":
			props[i] = nil
		default:
			props.SetText(i, text)
		}
	}
	sections.Properties = props.Append(nil)
	app, err := amqp.DecodeMapSection(sections.ApplicationProperties)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Property == "" {
			continue
		}
		if app, err = changed(app, c); err != nil {
			return nil, err
		}
	}
	w := amqp.BeginMapSection(nil, amqp.CodeApplicationProperties)
	for _, e := range app {
		w.Raw(amqp.AppendValue(nil, e.Key), amqp.AppendValue(nil, e.Value))
	}
	sections.ApplicationProperties = w.Finish()
	return sections.Append(make([]byte, 0, len(payload)+64)), nil
}

func changed(app amqp.Map, c sqlfilter.Change) (amqp.Map, error) {
	value := c.Value
	switch v := value.(type) {
	case time.Time:
		value = amqp.TimestampOf(v)
	case sqlfilter.UUID:
		value = amqp.UUID(v)
	case nil, string, bool, int64, float64, []byte:
	default:
		return nil, fmt.Errorf("a value of type %T", v)
	}
	out := make(amqp.Map, 0, len(app)+1)
	for _, e := range app {
		if name, _ := amqp.Text(e.Key); name != c.Property {
			out = append(out, e)
		}
	}
	if value != nil {
		out = append(out, amqp.MapEntry{Key: c.Property, Value: value})
	}
	return out, nil
}
