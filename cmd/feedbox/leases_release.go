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
		Short: "Have owners give up leases once; the relays decide who goes on",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, m meant) (string, error) {
		return "the owners of " + m.words + " release them at their next renewal", o.Leases.Release(ctx, m.ids...)
	})
}
