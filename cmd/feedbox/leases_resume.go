package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesResumeCommand() *cobra.Command {
	return p.leasesVerb("all leases, however they were paused", &cobra.Command{
		Use:   "resume LEASE... | --all",
		Short: "End a pause",
	}, func(ctx context.Context, _ *config.Relay, o *operator.Operator, m meant) (string, error) {
		if m.all {
			if err := o.Leases.Resume(ctx); err != nil {
				return "", err
			}
		}
		return m.words + " go on", o.Leases.ResumeLeases(ctx, m.ids...)
	})
}
