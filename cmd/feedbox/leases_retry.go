package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesRetryCommand() *cobra.Command {
	return p.leasesVerb("all leases", &cobra.Command{
		Use:   "retry LEASE... | --all",
		Short: "Have owners forget how often documents failed, and go on where they stopped",
		Long: `Have owners forget how often documents failed, and go on where they stopped.

It concerns what is still being tried. What was given up is parked: feedbox parked
retry sends that.`,
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, m meant) (string, error) {
		return m.words + " count failures anew", o.Leases.Retry(ctx, m.ids...)
	})
}
