package main

import (
	"fmt"

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

// someOrAll requires either arguments or the flag --all.
func someOrAll(name string, all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != *all {
			return usage(cmd, fmt.Errorf("%s takes the names of one or more %s, or --all", cmd.CommandPath(), name))
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
