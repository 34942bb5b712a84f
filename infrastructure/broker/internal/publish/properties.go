package publish

import (
	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// The attributes of CloudEvents 1.0 in the binary mode of its AMQP binding.
const (
	PropertySpecVersion = "cloudEvents_specversion"
	PropertyID          = "cloudEvents_id"
	PropertySource      = "cloudEvents_source"
	PropertyType        = "cloudEvents_type"
	PropertyTime        = "cloudEvents_time"
)

// Properties are what a consumer's kit reads beside the body of m: texts, and numbers as int64.
// What is not known is left out.
func Properties(m *relay.Message) map[string]any {
	p := map[string]any{}
	add(p, consumer.PropertyKey, m.Key)
	add(p, consumer.PropertyTraceparent, m.Traceparent)
	add(p, consumer.PropertySequence, m.Sequence)
	add(p, consumer.PropertyAggregateVersion, m.AggregateVersion)
	return p
}

// CloudEvents are the properties of m and its attributes of CloudEvents, from source.
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
	var unknown V
	if value != unknown {
		p[name] = value
	}
}
