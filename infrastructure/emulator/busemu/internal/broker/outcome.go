package broker

// OutcomeKind says how a locked message is settled.
type OutcomeKind uint8

// The outcomes.
const (
	// Complete removes the message.
	Complete OutcomeKind = iota + 1
	// Abandon gives the message back to its place and counts the delivery as failed.
	Abandon
	// Release gives the message back to its place; the delivery is not counted.
	Release
	// Defer sets the message aside; it can be received by sequence number only.
	Defer
	// DeadLetter moves the message to the dead-letter queue.
	DeadLetter
)

// Outcome is a settlement. Properties are merged into the message's application
// properties by every kind but Complete and Release. Reason and Description belong
// to DeadLetter.
type Outcome struct {
	Kind        OutcomeKind
	Reason      string
	Description string
	Properties  []Property
}
