package relay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class classifies a failure by its cause.
type Class uint8

const (
	// Outage is a transient failure of the broker or the way to it: unreachable, busy,
	// throttling, credentials being refreshed. The event is retried, and the retry does not
	// count as an attempt.
	Outage Class = iota
	// Blocked is a fault of the broker's set-up that an operator must fix: the entity is
	// missing, disabled or full, or access is denied. It is handled as an Outage, but
	// reported as an error.
	Blocked
	// Refused is a fault of the message: too large, malformed, of an unknown type. A retry
	// of the same message cannot succeed; attempts are counted.
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
	NotBefore time.Time // Outage and Blocked: earliest useful retry; zero = unknown
	// Ambiguous means that a Refused may also be a fault of the set-up: "not allowed" may
	// concern the message or the entity. If it happens to three keys with nothing accepted in
	// between, the relay treats it as Blocked (breaker.go).
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

// ClassOf returns the class of err. An error without a class is an Outage, because an unknown
// failure may delay an event but must not drop it.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Outage
}

// ReasonOf returns the slug of err, "interrupted" if a context ended, otherwise "unknown".
func ReasonOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Reason != "" {
		return e.Reason
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "interrupted"
	}
	return "unknown"
}

// PublishError lists the keys of a Publish call that were not accepted in full.
type PublishError struct {
	Keys []KeyError // one per failed key, ordered by Group
}

// KeyError is the failure of one key.
type KeyError struct {
	Group int   // index into the groups given to Publish
	Sent  int   // accepted messages of the group; Messages[Sent] failed
	Err   error // never nil
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
	ID    string // event id, or one derived from a document that has none
	Key   string // partition key; "" if the document has none
	Held  bool   // it waits for an earlier, failed event of its key
	// Blamed means that its key is probably at fault, because other keys were accepted since
	// the key's failure began. Otherwise nothing distinguishes it from an outage, and its
	// waiting must not be limited. A Refused failure needs no such evidence.
	Blamed bool
	// Err is its failure, or the failure of the earlier event. DeadLetter.Err must be or wrap
	// it: it contains the place of the failed event in the feed.
	Err error
}

// Ended returns the reason why no send may start under ctx, or nil. It compares the deadline
// with the clock, because the timer of ctx may fire late after the process was suspended. In
// that case another process may own the range already.
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
