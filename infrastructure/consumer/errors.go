package consumer

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons of dead letters that the kits set, not the handler.
const (
	// ReasonUndecodable marks an event whose body cannot be decoded. It is not retried, because
	// another attempt would fail as well.
	ReasonUndecodable = "undecodable"
	// ReasonAttempts marks an event whose handler failed Options.Attempts times in a row.
	ReasonAttempts = "too_many_attempts"
	// ReasonDeliveries marks an event that was passed to handlers too often without a result, for
	// example because it makes their processes run out of memory.
	ReasonDeliveries = "too_many_deliveries"
	// ReasonCannotDefer marks an event whose handler returned Defer on a broker that cannot defer.
	ReasonCannotDefer = "cannot_defer"
)

// DeadLetterError is a handler's error that moves its event to the dead-letter queue.
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

// Description returns the text of the cause, truncated to 1 KB so that every broker accepts it.
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

var errDeferred = errors.New("event deferred")

// Defer returns an error that defers the event: the broker keeps it and no longer delivers it, so
// that later events of its key can be handled. A deferred event is received by its SequenceNumber.
// Only Service Bus can defer; other kits dead-letter the event ([ReasonCannotDefer]).
func Defer() error { return errDeferred }

// ErrLockLost is the cause of a handler's context when the broker may have given its event to
// another consumer.
var ErrLockLost = errors.New("lock lost")

// ErrDrainTimeout is the cause of a handler's context when the drain timeout expired.
var ErrDrainTimeout = errors.New("drain timeout expired")

// PanicError is a panic of a Handler. The event is retried as after any other error.
type PanicError struct{ Value any }

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }
