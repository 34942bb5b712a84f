package main

import (
	"errors"
	"fmt"
	"io"

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

// usageError marks a command line that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// invariantError marks a promise of the outbox that is found broken: a part of the key
// space nobody reads, events missing in the middle.
type invariantError struct{ error }

func (e invariantError) Unwrap() error { return e.error }

// errReported ends a command whose output has said already what is wrong.
var errReported = errors.New("something is wrong")

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

// tell writes an error and what to do about it.
func tell(w io.Writer, err error) {
	if errors.Is(err, errReported) {
		return
	}
	_, _ = fmt.Fprintf(w, "feedbox: %v\n", err)
	next := console.NextOf(err)
	if _, ok := errors.AsType[*config.Error](err); ok && next == "" {
		next = "set what is named above; feedbox config print shows every variable"
	}
	if errors.Is(err, console.ErrNotAsked) {
		next = "add --yes if you are sure; --dry-run, where there is one, only looks"
	}
	if next != "" {
		_, _ = fmt.Fprintf(w, "next: %s\n", next)
	}
}
