package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// program is what every subcommand needs of its surroundings.
type program struct {
	out, errOut io.Writer
	environ     []string // NAME=value
}

// run executes one command line and returns the exit code: 0 ok, 1 failure,
// 2 wrong usage or configuration.
func run(ctx context.Context, args []string, out, errOut io.Writer, environ []string) int {
	p := &program{out: out, errOut: errOut, environ: environ}
	root := &cobra.Command{
		Use:           "feedbox",
		Short:         "Contacts with a transactional outbox on Azure Cosmos DB and Service Bus",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("a command is missing; try: %s help", cmd.Name())}
		},
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.apiCommand(), p.relayCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(errOut, "feedbox: %v\n", err)
	return exitCode(err)
}

// usageError marks a command line that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	if _, ok := errors.AsType[*config.Error](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// noArgs refuses arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q; it is configured by FEEDBOX_ environment variables", cmd.CommandPath(), args)}
	}
	return nil
}

// version is the module's version, or the revision it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
