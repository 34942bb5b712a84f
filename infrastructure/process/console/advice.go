package console

import "errors"

// AdvisedError is an error with advice.
type AdvisedError struct {
	Err  error
	Next string // a sentence or a command line
}

// Advise adds advice to err; nil stays nil.
func Advise(err error, next string) error {
	if err == nil {
		return nil
	}
	return &AdvisedError{Err: err, Next: next}
}

// Error returns the error without the advice.
func (a *AdvisedError) Error() string { return a.Err.Error() }

// Unwrap returns the error without the advice.
func (a *AdvisedError) Unwrap() error { return a.Err }

// NextOf returns the innermost advice, "" if there is none.
func NextOf(err error) string {
	next := ""
	for {
		a, ok := errors.AsType[*AdvisedError](err)
		if !ok {
			return next
		}
		next, err = a.Next, a.Err
	}
}
