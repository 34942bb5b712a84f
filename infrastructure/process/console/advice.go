package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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

// Refusals of Confirm.
var (
	// ErrNotAsked means that there is no terminal for a prompt.
	ErrNotAsked = errors.New("confirmation needed, but there is no terminal")
	// ErrDeclined means that the answer was not yes.
	ErrDeclined = errors.New("not confirmed, nothing was changed")
)

// Prompt asks for confirmation on a terminal.
type Prompt struct {
	In  io.Reader
	Out io.Writer
	Yes bool // the answer was given beforehand
}

// Confirm shows the consequences and returns nil if the answer is the word yes. It returns
// ErrNotAsked if In or Out is not a terminal.
func (p Prompt) Confirm(consequence string) error {
	if p.Yes {
		return nil
	}
	if !IsTerminal(p.In) || !IsTerminal(p.Out) {
		return ErrNotAsked
	}
	return p.ask(consequence)
}

func (p Prompt) ask(consequence string) error {
	if _, err := fmt.Fprintf(p.Out, "%s\nType yes to continue: ", consequence); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	answer, err := bufio.NewReader(p.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return ErrDeclined
	}
	return nil
}
