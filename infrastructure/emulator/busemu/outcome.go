package busemu

import (
	"errors"

	"feedbox/infrastructure/emulator/busemu/amqp"
)

// Outcome settles a delivery that is neither accepted nor rejected (AMQP 1.0 part 3, section
// 3.4). Zero: no such fault.
type Outcome uint8

const (
	// Released returns the delivery as if it had never been sent.
	Released Outcome = iota + 1
	// Modified returns it as a failed delivery.
	Modified
	// Unsettled settles the delivery without a state.
	Unsettled
)

// state returns the delivery state of the outcome, nil for none.
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

// Error makes an outcome an answer to a send, like the errors of the broker.
func (o Outcome) Error() string { return "settled by a fault" }

// answerTo returns the delivery state for a message that was not accepted.
func answerTo(err error) []byte {
	if o, ok := errors.AsType[Outcome](err); ok {
		return o.state()
	}
	return amqp.Rejected(wireError(err))
}
