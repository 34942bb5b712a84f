package consumer

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons of dead letters that no handler gave.
const (
	// ReasonUndecodable is that of an event whose body its handler's type cannot hold: no other
	// try would help.
	ReasonUndecodable = "undecodable"
	// ReasonAttempts is that of an event whose handler failed Options.Attempts times in a row.
	ReasonAttempts = "too_many_attempts"
	// ReasonCannotDefer is that of an event that a broker was to defer that cannot.
	ReasonCannotDefer = "cannot_defer"
)

// DeadLetterError asks for an event to be moved to the dead-letter queue.
type DeadLetterError struct {
	Reason string // short and stable, for example "unknown_schema"
	Err    error  // its text is the description
}

// DeadLetter returns an error that moves the event to the dead-letter queue.
func DeadLetter(reason string, err error) error {
	return &DeadLetterError{Reason: reason, Err: err}
}

// Error implements error.
func (e *DeadLetterError) Error() string {
	if e.Err == nil {
		return "dead letter: " + e.Reason
	}
	return "dead letter: " + e.Reason + ": " + e.Err.Error()
}

// Description returns the text of the cause, cut to what any broker takes.
func (e *DeadLetterError) Description() string {
	if e.Err == nil {
		return ""
	}
	const limit = 1024
	text := e.Err.Error()
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// Unwrap returns the cause.
func (e *DeadLetterError) Unwrap() error { return e.Err }

var errDeferred = errors.New("the event is deferred")

// Defer returns an error that leaves the event in the source, out of the way of those behind
// it: it is delivered no more, and can be asked for by its SequenceNumber. Only Service Bus can
// do so; elsewhere the event is dead-lettered ([ReasonCannotDefer]).
func Defer() error { return errDeferred }

// ErrLockLost is the cause of a handler's context when the broker may have given its event to
// another consumer.
var ErrLockLost = errors.New("lock lost")

// ErrDrainTimeout is the cause of a handler's context when the drain took too long.
var ErrDrainTimeout = errors.New("drain took too long")

// PanicError is a panic of a Handler. It is an error as any other.
type PanicError struct{ Value any }

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }
