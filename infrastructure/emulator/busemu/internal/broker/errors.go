package broker

import (
	"fmt"
)

// Condition is an AMQP error condition of Service Bus. The client SDK decides by it whether to
// retry (azservicebus internal/errors.go).
type Condition string

// The conditions the broker returns.
const (
	NotFound              Condition = "amqp:not-found"
	NotAllowed            Condition = "amqp:not-allowed"
	NotImplemented        Condition = "amqp:not-implemented"
	InternalError         Condition = "amqp:internal-error"
	ResourceLimitExceeded Condition = "amqp:resource-limit-exceeded"
	MessageSizeExceeded   Condition = "amqp:link:message-size-exceeded"
	DetachForced          Condition = "amqp:link:detach-forced"
	EntityDisabled        Condition = "com.microsoft:entity-disabled"
	EntityExists          Condition = "com.microsoft:entity-already-exists"
	ArgumentError         Condition = "com.microsoft:argument-error"
	MessageLockLost       Condition = "com.microsoft:message-lock-lost"
	MessageNotFound       Condition = "com.microsoft:message-not-found"
	SessionLockLost       Condition = "com.microsoft:session-lock-lost"
	SessionCannotBeLocked Condition = "com.microsoft:session-cannot-be-locked"
	ServerBusy            Condition = "com.microsoft:server-busy"
	Timeout               Condition = "com.microsoft:timeout"
	OperationCancelled    Condition = "com.microsoft:operation-cancelled"
)

// Error is the refusal of a request: a condition for the client's code and a text for its
// user. Compare with errors.As, or with errors.Is against a Condition.
type Error struct {
	Condition   Condition
	Description string
}

// Error returns the condition and the text.
func (e *Error) Error() string { return string(e.Condition) + ": " + e.Description }

// Is reports whether target is e's condition.
func (e *Error) Is(target error) bool {
	c, ok := target.(Condition)
	return ok && c == e.Condition
}

// Error makes a Condition a valid target of errors.Is.
func (c Condition) Error() string { return string(c) }

func errorf(c Condition, format string, args ...any) *Error {
	return &Error{Condition: c, Description: fmt.Sprintf(format, args...)}
}

func closed() *Error { return errorf(OperationCancelled, "The broker is closed.") }

func notFound(path string) *Error {
	return errorf(NotFound, "The messaging entity '%s' could not be found.", path)
}

func detached(path string) *Error {
	return errorf(DetachForced, "The link is force detached: the entity '%s' has been deleted, updated or unexpectedly reloaded.", path)
}
