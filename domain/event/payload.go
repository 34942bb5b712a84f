package event

// Payload is the content of an event besides the common fields. Implementations are values;
// Action must work for the zero value.
type Payload interface {
	// Action names the event's type, see Event.Action.
	Action() string
}

// Of is an event with a payload. It provides the methods that are the same for all events.
type Of[P Payload] struct {
	Meta
	Payload P
}

// Action implements Event.
func (e Of[P]) Action() string { return e.Payload.Action() }

// Stamped implements Event.
func (e Of[P]) Stamped(version, sequence int64) Event {
	e.Meta = e.At(version, sequence)
	return e
}
