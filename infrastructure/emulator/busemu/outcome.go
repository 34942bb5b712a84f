package busemu

import (
	"errors"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// Outcome is how a broker settles a delivery that it neither accepts nor rejects
// (AMQP 1.0 part 3, section 3.4). Zero stands for no such fault.
type Outcome uint8

const (
	// Released gives the delivery back as if it had never been sent.
	Released Outcome = iota + 1
	// Modified gives it back with the note that delivery failed.
	Modified
	// Unsettled is no outcome: the delivery is settled without a state.
	Unsettled
)

// state is the delivery state that tells the outcome, nil for none.
func (o Outcome) state() []byte {
	switch o {
	case Released:
		return amqp.StateReleased
	case Modified:
		return (&amqp.State{Code: amqp.CodeModified, DeliveryFailed: true}).Append(nil)
	default:
		return nil
	}
}

// Error makes an outcome an answer to a send beside the errors of the broker.
func (o Outcome) Error() string { return "settled by a fault" }

// answerTo is the delivery state that tells why a message was not accepted.
func answerTo(err error) []byte {
	if o, ok := errors.AsType[Outcome](err); ok {
		return o.state()
	}
	return amqp.Rejected(wireError(err))
}
