package main

import (
	"context"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

func (p *program) leasesPauseCommand() *cobra.Command {
	var yes bool
	cmd := p.leasesVerb("all leases, including future ones", &cobra.Command{
		Use:   "pause LEASE... | --all",
		Short: "Pause sending; owners keep their leases",
	}, func(ctx context.Context, cfg *config.Relay, o *operator.Operator, s selection) (string, error) {
		noted := s.label + " pause; unsent events can expire, see feedbox lag"
		if !s.all {
			return noted, o.Leases.PauseLeases(ctx, s.ids...)
		}
		if err := p.confirm(yes, "No relay sends anything until feedbox leases resume --all. Events wait, and expire after %s.", cfg.EventTTL); err != nil {
			return "", err
		}
		return noted, o.Leases.Pause(ctx)
	})
	yesFlag(cmd, &yes)
	return cmd
}
