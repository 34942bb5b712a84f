package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

func (p *program) leasesPauseCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "pause LEASE... | --all",
		Short: "Have owners hold their leases and send nothing until resume",
		Args:  someOrAll("leases", &all),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *wiring.Operator) error {
				if all {
					if err := o.Leases.Pause(ctx); err != nil {
						return err
					}
				} else if err := o.Leases.PauseLeases(ctx, leaseTokens(args)...); err != nil {
					return noSuchLease(err)
				}
				p.say(console.FormatTable, "noted: %s pause; events wait, and age: see feedbox lag", leasesNamed(args))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all leases, also those that come")
	return cmd
}
