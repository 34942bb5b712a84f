package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesResumeCommand() *cobra.Command {
	return p.leasesVerb("all leases, whether paused by name or by --all", &cobra.Command{
		Use:   "resume LEASE... | --all",
		Short: "Resume paused leases",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, s selection) (string, error) {
		if s.all {
			if err := o.Leases.Resume(ctx); err != nil {
				return "", err
			}
		}
		return s.label + " resume", o.Leases.ResumeLeases(ctx, s.ids...)
	})
}
