package handling

import "feedbox/infrastructure/consumer"

// ReadProperties reads what the relay has put into the properties of a message.
func ReadProperties(e *consumer.Event) {
	e.Key, _ = e.Properties[consumer.PropertyKey].(string)
	e.Traceparent, _ = e.Properties[consumer.PropertyTraceparent].(string)
	e.Sequence = whole(e.Properties[consumer.PropertySequence])
	e.AggregateVersion = whole(e.Properties[consumer.PropertyAggregateVersion])
}

// whole returns an integer of any width; 0 for anything else.
func whole(v any) int64 {
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
