package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
)

func (p *program) parkedLsCommand() *cobra.Command {
	var format console.Format
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the parked keys, the oldest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *operator.Operator) error {
				gates, err := o.Parked.Gates(ctx)
				if err != nil {
					return err
				}
				views := make([]gateView, len(gates))
				table := console.NewTable("KEY", "EVENTS", "REASON", "PARKED", "STATE")
				var failures []failure
				for i, g := range gates {
					v := newGateView(g)
					views[i] = v
					table.Row(v.Key, v.Events, v.Reason, console.Age(time.Since(v.ParkedAt))+" ago", v.state())
					failures = append(failures, failure{v.Key, cmp.Or(v.Failure, v.Error)})
				}
				if err := p.write(format, views, table, "no key is parked"); err != nil {
					return err
				}
				p.sayFailures(format, failures, "correct the cause, then feedbox parked retry KEY")
				return nil
			})
		},
	}
	outputFlag(cmd, &format)
	return cmd
}
