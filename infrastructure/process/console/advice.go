package console

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

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

// NoCommand returns the error for a command that cmd does not have; it suggests names of
// similar spelling.
func NoCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}
