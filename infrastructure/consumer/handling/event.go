package handling

import (
	"time"

	"feedbox/infrastructure/consumer"
)

// ReadProperties copies the properties that the relay has set on a message to fields of the event.
func ReadProperties(e *consumer.Event) {
	e.Key, _ = e.Properties[consumer.PropertyKey].(string)
	e.Traceparent, _ = e.Properties[consumer.PropertyTraceparent].(string)
	e.Sequence = integer(e.Properties[consumer.PropertySequence])
	e.AggregateVersion = integer(e.Properties[consumer.PropertyAggregateVersion])
}

// ReadCreation sets the time of creation, from the value of the property that the broker uses for it.
func ReadCreation(e *consumer.Event, property any) {
	text, _ := property.(string)
	e.CreatedAt, _ = time.Parse(time.RFC3339, text) // zero if it is unknown
}

// integer converts an integer of any width, and returns 0 for anything else. The widths differ
// because AMQP clients encode small numbers in fewer bytes.
func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case uint32:
		return int64(n)
	case uint16:
		return int64(n)
	case uint8:
		return int64(n)
	case int:
		return int64(n)
	}
	return 0
}
