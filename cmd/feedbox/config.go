package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "Show and check the configuration", p.configPrintCommand(), p.configCheckCommand())
}

// process is a process with a configuration of its own.
type process struct {
	name string
	load func() ([]config.Setting, error)
}

// processes returns the named processes; all if names is empty.
func (p *program) processes(names []string) []process {
	telemetry := config.OpenTelemetrySettings(p.environ)
	all := []process{
		{"api", func() ([]config.Setting, error) {
			c, err := config.LoadAPI(p.environ)
			return append(c.Settings(), telemetry...), err
		}},
		{"relay", func() ([]config.Setting, error) {
			c, err := config.LoadRelay(p.environ)
			return append(c.Settings(), telemetry...), err
		}},
		{"console", func() ([]config.Setting, error) {
			c, err := config.LoadConsole(p.environ)
			return c.Settings(), err
		}},
	}
	if len(names) == 0 {
		return all
	}
	for _, one := range all {
		if one.name == names[0] {
			return []process{one}
		}
	}
	return nil // refused by processArg
}

// processArg accepts api, relay, console or no argument.
func processArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 1 && slices.Contains([]string{"api", "relay", "console"}, args[0]) {
		return nil
	}
	return usage(cmd, fmt.Errorf("%s takes api, relay, console or no argument for all, got %q", cmd.CommandPath(), args))
}
