package event

// Payload is what an event tells besides what all events carry. Implementations are values
// whose zero value answers, too.
type Payload interface {
	// Action names the event's type, as Event.Action.
	Action() string
}

// Of is the event of a payload. It spares an aggregate the methods that are the same for
// all events.
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
