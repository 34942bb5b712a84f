package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/console"
	"feedbox/infrastructure/wiring"
)

func (p *program) leasesReleaseCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "release LEASE... | --all",
		Short: "Have owners give up leases once; the relays decide who goes on",
		Args:  someOrAll("leases", &all),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.operate(cmd, false, quick, func(ctx context.Context, _ *config.Relay, o *wiring.Operator) error {
				if err := o.Leases.Release(ctx, leaseTokens(args)...); err != nil {
					return noSuchLease(err)
				}
				p.say(console.FormatTable, "noted: the owners of %s release them at their next renewal", leasesNamed(args))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all leases")
	return cmd
}
