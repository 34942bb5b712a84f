package broker

// OutcomeKind is the kind of a settlement.
type OutcomeKind uint8

// The outcomes.
const (
	// Complete removes the message.
	Complete OutcomeKind = iota + 1
	// Abandon returns the message to its place and counts a failed delivery.
	Abandon
	// Release returns the message to its place without counting the delivery.
	Release
	// Defer sets the message aside. It can then be received by sequence number only.
	Defer
	// DeadLetter moves the message to the dead-letter queue.
	DeadLetter
)

// Outcome is a settlement. Every kind except Complete and Release merges Properties into the
// message's application properties. Reason and Description belong to DeadLetter.
type Outcome struct {
	Kind        OutcomeKind
	Reason      string
	Description string
	Properties  []Property
}
