package relay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class says what a failure means for the events it stopped.
type Class uint8

const (
	// Outage is a failure of the way to the broker: unreachable, busy, throttling,
	// credentials being refreshed. Waiting cures it; no attempt is spent.
	Outage Class = iota
	// Blocked is a fault of the broker's set-up that a person must cure: the entity is
	// missing, disabled or full, or access is denied. As Outage, but loud.
	Blocked
	// Refused is a fault of the message: too large, malformed, not an event one knows.
	// Sending it again unchanged cannot succeed; attempts are counted.
	Refused
)

// String returns the class as it appears in logs and metrics.
func (c Class) String() string {
	return [...]string{"outage", "blocked", "refused"}[c]
}

// Error is a classified failure to send or to read an event.
type Error struct {
	Class     Class
	Reason    string    // stable slug for metrics and parked documents, for example "too_large"
	NotBefore time.Time // of an Outage or Blocked: no use to try again before; zero = not known
	// Ambiguous, of a Refused, says that it may as well be the fault of the set-up: "not
	// allowed" fits a message and an entity. If it happens to three keys and nothing is
	// accepted in between, the relay takes it for Blocked (judge.go).
	Ambiguous bool
	Err       error // cause; may be nil
}

func (e *Error) Error() string {
	text := e.Class.String() + ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Refuse returns a Refused error with the reason and a formatted cause.
func Refuse(reason, format string, args ...any) *Error {
	return &Error{Class: Refused, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of err. An error without a class is an Outage: an
// unknown failure costs time, never an event.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Outage
}

// ReasonOf returns the slug of err, "interrupted" if ctx ended it, else "unknown".
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != "" {
		return e.Reason
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "interrupted"
	}
	return "unknown"
}

// PublishError tells which keys of a Publish call were not accepted in full.
type PublishError struct {
	Keys []KeyError // one for each such key, by rising Group
}

// KeyError is the failure of one key.
type KeyError struct {
	Group int   // index into the groups given to Publish
	Sent  int   // messages of the group that the broker accepted; Messages[Sent] failed
	Err   error // why; never nil
}

func (e *PublishError) Error() string {
	if len(e.Keys) == 0 {
		return "publish: no key failed"
	}
	return fmt.Sprintf("publish: %d keys failed, the first after %d messages: %v", len(e.Keys), e.Keys[0].Sent, e.Keys[0].Err)
}

// Unwrap returns the cause of each key.
func (e *PublishError) Unwrap() []error {
	errs := make([]error, len(e.Keys))
	for i, k := range e.Keys {
		errs[i] = k.Err
	}
	return errs
}

// Failure is one event that was neither accepted nor parked.
type Failure struct {
	Index int    // place in the changes given to Handle
	ID    string // event id; "" if the document has none
	Key   string // partition key; "" if the document has none
	Held  bool   // it waits for an earlier event of its key, which failed
	Err   error  // the failure, or for a held event the failure that holds it
}

// Ended returns why no send may start any more under ctx, nil while it lasts. The timer behind
// ctx.Done may fire late after the process stood still, and the fence must hold then above all.
func Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if deadline, ok := ctx.Deadline(); cause == nil && ok && !time.Now().Before(deadline) { //nolint:forbidigo // a deadline is of the real clock
		cause = context.DeadlineExceeded
	}
	if cause == nil {
		return nil
	}
	return fmt.Errorf("send: %w", cause)
}
