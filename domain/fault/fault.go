package fault

import (
	"errors"
	"time"
)

// CodeValidation is the code of an Invalid fault that lists its fields.
const CodeValidation = "validation_failed"

// Error is a failure of a known kind.
type Error struct {
	// Kind decides how callers react.
	Kind Kind
	// Code is a stable slug, part of the API: clients may branch on it.
	Code string
	// Message is one sentence for a person. Its text may change.
	Message string
	// Fields lists every rule that was broken, for kind Invalid.
	Fields []Field
	// RetryAfter is how long to wait before trying again; zero when unknown.
	RetryAfter time.Duration
	// Err is the cause, for logs. It may be nil and is never shown to clients.
	Err error
}

// Field is one broken rule of one input field.
type Field struct {
	// Pointer locates the field in the request body (RFC 6901), such as "/firstName".
	Pointer string
	// Message says what the field must be.
	Message string
}

// New returns a fault without a cause. An empty code stands for the kind's name.
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

// KindOf returns the kind of the outermost fault in err's chain, and Internal
// for an error that holds none. A nil error is Internal too: do not ask.
func KindOf(err error) Kind {
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	return Internal
}

// Is reports whether err holds a fault whose kind is kind.
func Is(err error, kind Kind) bool {
	if err == nil {
		return false
	}
	var f *Error
	return errors.As(err, &f) && f.Kind == kind
}

// RetryAfter returns how long the fault in err asks to wait; zero when it does
// not say.
func RetryAfter(err error) time.Duration {
	var f *Error
	if errors.As(err, &f) {
		return f.RetryAfter
	}
	return 0
}

// Missing returns the NotFound fault of a thing that does not exist or is deleted. Noun is
// what people call it; the code is noun_not_found.
func Missing(noun, id string) *Error {
	return New(NotFound, noun+"_not_found", "there is no "+noun+" "+id)
}
