package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "Show and check the configuration", p.configPrintCommand(), p.configCheckCommand())
}

// process is a process with a configuration of its own.
type process struct {
	name string
	load func() ([]config.Setting, error)
}

// processes returns the named process. Without a name these are api, relay and console, because push and
// feed have required variables that an installation without them does not set.
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
			_, relayErr := config.LoadRelay(p.environ) // the console reads the relay's store
			return c.Settings(), joinFaults(err, config.WithoutBroker(relayErr))
		}},
		{string(processPush), func() ([]config.Setting, error) {
			c, err := p.loadPush()
			return append(c.Settings(), telemetry...), err
		}},
		{string(processFeed), func() ([]config.Setting, error) {
			c, err := p.loadFeed()
			return append(c.Settings(), telemetry...), err
		}},
	}
	if len(names) == 0 {
		return all[:3]
	}
	for _, one := range all {
		if one.name == names[0] {
			return []process{one}
		}
	}
	return nil // refused by processArg
}

const processNames = "api|relay|console|push|feed"

// processArg accepts the name of a process or no argument.
func processArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) == 1 && slices.Contains(strings.Split(processNames, "|"), args[0]) {
		return nil
	}
	return usage(cmd, fmt.Errorf("%s takes one of %s, or no argument for the first three, got %q", cmd.CommandPath(), processNames, args))
}

// settingView is the output form of a variable.
type settingView struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	Source  string   `json:"source"`
	Secret  bool     `json:"secret,omitempty"`
	Readers []string `json:"readBy"`
}

func (p *program) configPrintCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "print [" + processNames + "]",
		Short: "Print every setting and its source, secrets masked",
		Args:  processArg,
		RunE: func(_ *cobra.Command, args []string) error {
			views, err := settings(p.processes(args))
			table := console.NewTable("VARIABLE", "SOURCE", "READ BY", "VALUE")
			for _, v := range views {
				table.Row(v.Name, v.Source, strings.Join(v.Readers, ", "), v.Value)
			}
			return errors.Join(p.write(format, views, table, ""), err)
		},
	}
	outputFlag(cmd, &format)
	return cmd
}

// settings merges the variables of processes. It returns all values even if some have
// faults; the error lists each fault once.
func settings(of []process) ([]settingView, error) {
	views := []settingView{}
	var errs []error
	for _, one := range of {
		found, err := one.load()
		errs = append(errs, err)
		for _, s := range found {
			at := slices.IndexFunc(views, func(v settingView) bool { return v.Name == s.Name })
			if at < 0 {
				views = append(views, settingView{Name: s.Name, Value: s.Value, Source: string(s.Source), Secret: s.Secret})
				at = len(views) - 1
			}
			views[at].Readers = append(views[at].Readers, one.name)
		}
	}
	slices.SortFunc(views, func(a, b settingView) int { return strings.Compare(a.Name, b.Name) })
	return views, joinFaults(errs...)
}

// checkView is the result for one process.
type checkView struct {
	Process string      `json:"process"`
	OK      bool        `json:"ok"`
	Faults  []faultView `json:"faults"`
	// Warnings do not keep the process from starting.
	Warnings []faultView `json:"warnings"`
}

type faultView struct {
	Variable string `json:"variable"`
	Problem  string `json:"problem"`
	Hint     string `json:"hint,omitempty"`
}

func (p *program) configCheckCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "check [" + processNames + "]",
		Short: "Check the configuration and list every fault",
		Args:  processArg,
		RunE: func(_ *cobra.Command, args []string) error {
			views := []checkView{}
			table := console.NewTable("PROCESS", "VARIABLE", "PROBLEM")
			ok := true
			for _, one := range p.processes(args) {
				v := checkView{Process: one.name, OK: true, Faults: []faultView{}, Warnings: []faultView{}}
				found, err := one.load()
				if wrong, isWrong := errors.AsType[*config.Error](err); isWrong {
					v.OK, ok = false, false
					for _, f := range wrong.Faults {
						v.Faults = append(v.Faults, faultView{Variable: f.Variable, Problem: f.Problem, Hint: f.Hint})
						table.Row(one.name, f.Variable, strings.TrimPrefix(f.String(), f.Variable+" "))
					}
				}
				for _, s := range found {
					if s.Warning != "" {
						v.Warnings = append(v.Warnings, faultView{Variable: s.Name, Problem: s.Warning})
						table.Row(one.name, s.Name, "warning: "+s.Warning)
					}
				}
				if v.OK && len(v.Warnings) == 0 {
					table.Row(one.name, "", "none")
				}
				views = append(views, v)
			}
			if err := p.write(format, views, table, ""); err != nil {
				return err
			}
			if !ok {
				return usageError{errReported}
			}
			return nil
		},
	}
	outputFlag(cmd, &format)
	return cmd
}
