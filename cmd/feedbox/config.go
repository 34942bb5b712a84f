package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "See and check the configuration", p.configPrintCommand(), p.configCheckCommand())
}

// process is one of those that are configured.
type process struct {
	name string
	load func() ([]config.Setting, error)
}

// processes are those named, or all.
func (p *program) processes(names []string) []process {
	all := []process{
		{"api", func() ([]config.Setting, error) {
			c, err := config.LoadAPI(p.environ)
			return c.Settings(), err
		}},
		{"relay", func() ([]config.Setting, error) {
			c, err := config.LoadRelay(p.environ)
			return c.Settings(), err
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

// processArg takes api, relay, console or nothing.
func processArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 1 && slices.Contains([]string{"api", "relay", "console"}, args[0]) {
		return nil
	}
	return usage(cmd, fmt.Errorf("%s takes api, relay, console or nothing for all, got %q", cmd.CommandPath(), args))
}
