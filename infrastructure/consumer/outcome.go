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
	// ReasonRefused marks an event whose error Policy.IsRefused reports.
	ReasonRefused = "refused"
	// ReasonDeliveries marks an event that was passed to handlers too often without a result, for
	// example because it makes their processes run out of memory.
	ReasonDeliveries = "too_many_deliveries"
	// ReasonUnknown marks a parked event that a process refused and did not store why.
	ReasonUnknown = "unknown"
	// ReasonCannotDefer marks an event whose handler returned Defer on a broker that cannot defer.
	ReasonCannotDefer = "cannot_defer"
)

// DeadLetterError is a handler's error that moves its event to the dead-letter queue.
type DeadLetterError struct {
	Reason string // short and stable, for example "unknown_schema"
	Err    error  // its text is the description
}

// DeadLetter returns an error that moves the event to the dead-letter queue. reason is truncated to 1 KB.
func DeadLetter(reason string, err error) error {
	return &DeadLetterError{Reason: brief(reason), Err: err}
}

// Code returns Reason, truncated to 1 KB.
func (e *DeadLetterError) Code() string { return brief(e.Reason) }

// brief returns the beginning of a text: 1 KB, so that every broker accepts it. RabbitMQ closes the connection of
// all keys for a header that exceeds a frame, again with each attempt.
func brief(text string) string {
	const limit = 1024
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
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
	return brief(e.Err.Error())
}

// Unwrap returns the cause.
func (e *DeadLetterError) Unwrap() error { return e.Err }

var errDeferred = errors.New("event deferred")

// Defer returns an error that defers the event: the broker keeps it and no longer delivers it, so
// that later events of its key can be handled. A deferred event is received by its SequenceNumber.
// Only Service Bus can defer; other kits dead-letter the event ([ReasonCannotDefer]).
func Defer() error { return errDeferred }

// Unavailable marks an error of a handler that says nothing about its event, such as that of a database
// that does not answer. The event is retried, and the failure does not count towards Options.Attempts. A
// retry of parked events ends, and is repeated later. Unavailable(nil) is nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &UnavailableError{err}
}

// UnavailableError is an error of Unavailable.
type UnavailableError struct{ Err error }

// Error implements error.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the marked error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// ErrLockLost is the cause of a handler's context when the broker may have given its event to
// another consumer.
var ErrLockLost = errors.New("lock lost")

// ErrTimeout is the cause of a handler's context when Policy.Timeout has passed.
var ErrTimeout = errors.New("the handler's timeout has passed")

// ErrDrainTimeout is the cause of a handler's context when the drain timeout expired.
var ErrDrainTimeout = errors.New("drain timeout expired")

// PanicError is a panic of a Handler or of a function of its Policy. The event is retried as after any other error.
type PanicError struct{ Value any }

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Outcome is the result of one delivery.
type Outcome struct {
	Event   *Event
	Verdict Verdict // of the inbox
	Action  Action
	Missing int64 // for a gap: the number of events missing before this one
	Err     error // of the handler, the inbox or the settlement
}

// Action is the way in which a delivery ended.
type Action uint8

const (
	// Handled means that the handler accepted the event and it was completed.
	Handled Action = iota
	// Dropped means that an event was completed and nothing keeps it: a duplicate or stale one, without the
	// handler, or one that was refused, by Policy.Refused. Only then Err is set.
	Dropped
	// Abandoned means that the event will be redelivered or retried.
	Abandoned
	// DeadLettered means that the event was moved to the dead-letter queue.
	DeadLettered
	// Deferred means that the event can only be received by its sequence number.
	Deferred
	// Unsettled means that the broker did not confirm the settlement; the event may be redelivered.
	Unsettled
	// Parked means that the event was stored in Options.Park and completed. Err is why; nil for an event
	// that waits for an earlier one of its key.
	Parked
)

// String returns the action as it appears in logs and metrics.
func (a Action) String() string {
	switch a {
	case Handled:
		return "handled"
	case Dropped:
		return "dropped"
	case Abandoned:
		return "abandoned"
	case DeadLettered:
		return "dead_lettered"
	case Deferred:
		return "deferred"
	case Unsettled:
		return "unsettled"
	case Parked:
		return "parked"
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}
