package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

func (p *program) leasesResumeCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "resume LEASE... | --all",
		Short: "End a pause",
		Args:  someOrAll("leases", &all),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *wiring.Operator) error {
				if all {
					if err := o.Leases.Resume(ctx); err != nil {
						return err
					}
				}
				if err := o.Leases.ResumeLeases(ctx, leaseTokens(args)...); err != nil {
					return noSuchLease(err)
				}
				p.say(console.FormatTable, "noted: %s go on", leasesNamed(args))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all leases, however they were paused")
	return cmd
}
