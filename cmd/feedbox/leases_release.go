package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesReleaseCommand() *cobra.Command {
	return p.leasesVerb("all leases", &cobra.Command{
		Use:   "release LEASE... | --all",
		Short: "Release leases once; the relays redistribute them",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "the owners of " + s.label + " release them at their next renewal", o.Leases.Release(ctx, s.ids...)
	})
}
