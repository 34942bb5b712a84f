package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

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
		Use:   "check [api|relay|console]",
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
