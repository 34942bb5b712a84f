package publish

import (
	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// Names of the CloudEvents 1.0 attributes in the binary mode of its AMQP binding.
const (
	PropertySpecVersion = "cloudEvents_specversion"
	PropertyID          = "cloudEvents_id"
	PropertySource      = "cloudEvents_source"
	PropertyType        = "cloudEvents_type"
	PropertyTime        = "cloudEvents_time"
)

// Properties returns the properties of m that consumer kits read: strings, and numbers as int64.
// Properties without a value are omitted.
func Properties(m *relay.Message) map[string]any {
	p := map[string]any{}
	add(p, consumer.PropertyKey, m.Key)
	add(p, consumer.PropertyTraceparent, m.Traceparent)
	add(p, consumer.PropertySequence, m.Sequence)
	add(p, consumer.PropertyAggregateVersion, m.AggregateVersion)
	return p
}

// CloudEvents returns the properties of m and its CloudEvents attributes with the given source.
func CloudEvents(m *relay.Message, source string) map[string]any {
	p := Properties(m)
	p[PropertySpecVersion] = "1.0"
	add(p, PropertyID, m.ID)
	add(p, PropertySource, source)
	add(p, PropertyType, m.Action)
	add(p, PropertyTime, m.CreatedAt)
	return p
}

func add[V comparable](p map[string]any, name string, value V) {
	var zero V
	if value != zero {
		p[name] = value
	}
}
