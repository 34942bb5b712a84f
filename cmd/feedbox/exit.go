package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

// The exit codes.
const (
	exitOK        = 0
	exitFailure   = 1
	exitUsage     = 2
	exitInvariant = 3
)

// usageError marks an error of the command line: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// invariantError marks a broken promise of the outbox, for example an unowned part of the
// key space or a gap in the events of a key: exit code 3.
type invariantError struct{ error }

func (e invariantError) Unwrap() error { return e.error }

// errReported ends a command that has already printed its problems.
var errReported = errors.New("problems found, see the output")

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[usageError](err); ok || errors.Is(err, console.ErrNotAsked) {
		return exitUsage
	}
	if _, ok := errors.AsType[invariantError](err); ok {
		return exitInvariant
	}
	return exitFailure
}

// printError writes the error of cmd and the next step for the operator.
func printError(w io.Writer, cmd *cobra.Command, err error) {
	if errors.Is(err, errReported) {
		return
	}
	_, _ = fmt.Fprintln(w, console.Plain("feedbox: "+err.Error()))
	next := console.NextOf(err)
	if _, ok := errors.AsType[*config.Error](err); ok && next == "" {
		next = "correct these variables; feedbox config print shows all of them"
	}
	if errors.Is(err, console.ErrNotAsked) {
		next = "add --yes to confirm"
		if cmd.Flags().Lookup("dry-run") != nil {
			next += "; --dry-run shows the effect first"
		}
	}
	if next != "" {
		_, _ = fmt.Fprintln(w, console.Plain("next: "+next))
	}
}
