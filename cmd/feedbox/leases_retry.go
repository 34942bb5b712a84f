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
		Short: "Reset failure counts and resume stopped ranges",
		Long: `Reset failure counts and resume stopped ranges.

This affects documents that are still being retried. Parked events are sent by
feedbox parked retry.`,
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		return "reset of the failure counts of " + s.label, o.Leases.Retry(ctx, s.ids...)
	})
}
