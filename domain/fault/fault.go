// Package fault classifies failures. Every layer uses the same kinds, so that a transport
// can answer without knowing which adapter failed.
//
// A fault never holds personal data: messages name rules and fields, not values.
package fault

import (
	"errors"
	"time"
)

// CodeValidation is the code of an Invalid fault that lists its fields.
const CodeValidation = "validation_failed"

// Error is a failure of a known kind.
type Error struct {
	// Kind determines how callers react.
	Kind Kind
	// Code is a stable slug. It is part of the API: clients may branch on it.
	Code string
	// Message is one sentence for a person. Its text may change.
	Message string
	// Fields lists every rule that was broken, for kind Invalid.
	Fields []Field
	// RetryAfter is the time to wait before a retry; zero if unknown.
	RetryAfter time.Duration
	// Err is the cause, for logs. It may be nil. Clients never see it.
	Err error
}

// Field is one broken rule of one input field.
type Field struct {
	// Pointer locates the field in the request body (RFC 6901), such as "/firstName".
	Pointer string
	// Message states the rule.
	Message string
}

// New returns a fault without a cause. An empty code means the name of the kind.
func New(kind Kind, code, message string) *Error {
	return Wrap(kind, code, message, nil)
}

// Wrap returns a fault caused by err.
func Wrap(kind Kind, code, message string, err error) *Error {
	if code == "" {
		code = kind.String()
	}
	return &Error{Kind: kind, Code: code, Message: message, Err: err}
}

// Error returns the message followed by the fields and the cause.
func (e *Error) Error() string {
	text := e.Message
	for i, f := range e.Fields {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		text += separator + f.Pointer + " " + f.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the outermost fault in err's chain, and Internal if there is
// none. It must not be called with a nil error.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.Kind
	}
	return Internal
}

// Is reports whether err holds a fault whose kind is kind.
func Is(err error, kind Kind) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && f.Kind == kind
}

// RetryAfter returns the RetryAfter of the outermost fault in err's chain, or zero.
func RetryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*Error](err); ok {
		return f.RetryAfter
	}
	return 0
}

// Missing returns the NotFound fault of a thing that does not exist or is deleted. Its code
// is noun_not_found.
func Missing(noun, id string) *Error {
	return New(NotFound, noun+"_not_found", "there is no "+noun+" "+id)
}
