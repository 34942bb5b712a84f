package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/console"
)

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
		Use:   "print [api|relay|console]",
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
