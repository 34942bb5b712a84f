package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesPauseCommand() *cobra.Command {
	var yes bool
	cmd := p.leasesVerb("all leases, also those that come", &cobra.Command{
		Use:   "pause LEASE... | --all",
		Short: "Have owners hold their leases and send nothing until resume",
	}, func(ctx context.Context, cfg *config.Relay, o *operator.Operator, m meant) (string, error) {
		noted := m.words + " pause; events wait, and age: see feedbox lag"
		if !m.all {
			return noted, o.Leases.PauseLeases(ctx, m.ids...)
		}
		if err := p.confirm(yes, "No relay sends anything until feedbox leases resume --all. Events wait, and are lost after %s.", cfg.EventTTL); err != nil {
			return "", err
		}
		return noted, o.Leases.Pause(ctx)
	})
	yesFlag(cmd, &yes)
	return cmd
}
