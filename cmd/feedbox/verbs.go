package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/console"
)

// group returns a command that only has subcommands.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage(cmd, console.NoCommand(cmd, args[0]))
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usage(cmd, fmt.Errorf("subcommand missing after %s", cmd.CommandPath()))
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// usage marks err as wrong usage of cmd.
func usage(cmd *cobra.Command, err error) error {
	return usageError{console.Advise(err, cmd.CommandPath()+" --help")}
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, fmt.Errorf("%s takes no arguments, got %q; it is configured by FEEDBOX_ environment variables", cmd.CommandPath(), args))
	}
	return nil
}

// oneArg requires one argument; name is its name in errors.
func oneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usage(cmd, fmt.Errorf("%s takes one argument, %s, got %q", cmd.CommandPath(), name, args))
		}
		return nil
	}
}

// outputFlag adds -o.
func outputFlag(cmd *cobra.Command, f *console.Format) {
	cmd.Flags().VarP(f, "output", "o", "output format")
}

// yesFlag adds --yes.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "skip the confirmation")
}

// filled is a flag that must not be blank, because the value may be an unset variable of a script. Without the
// flag a command has another target: the relay instead of a consumer, or everything instead of a key.
type filled string

func (f *filled) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("it is blank: give a value, or leave out the flag")
	}
	*f = filled(text)
	return nil
}

func (f *filled) String() string { return string(*f) }
func (*filled) Type() string     { return "string" }

// filledFlag adds a flag that must not be blank.
func filledFlag(cmd *cobra.Command, into *string, name, help string) {
	cmd.Flags().Var((*filled)(into), name, help)
}

// parseWhen parses a time in RFC 3339, or an age such as 2h.
func parseWhen(text string) (time.Time, error) {
	now := time.Now()
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		ago, err := time.ParseDuration(text)
		if err != nil || ago <= 0 {
			return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-01-31T08:00:00Z nor an age such as 2h", text)
		}
		t = now.Add(-ago)
	}
	if t.After(now) {
		return time.Time{}, fmt.Errorf("%q is in the future", text)
	}
	return t, nil
}

// status colours a text by its first word.
func (p *program) status(text string) string {
	switch first, _, _ := strings.Cut(text, " "); first {
	case "ok", "healthy":
		return p.style.Good(text)
	case "failed", "stopped", "expired,":
		return p.style.Bad(text)
	case "warning", "unknown", "retrying", "unread", "not", "held", "silent", "free":
		return p.style.Warn(text)
	}
	return text
}

// paintStatus returns a Paint function for tables with a status column.
func (p *program) paintStatus(column int) func(int, string) string {
	return func(at int, text string) string {
		if at == column {
			return p.status(text)
		}
		return text
	}
}
