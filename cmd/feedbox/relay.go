package main

import (
	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
)

func (p *program) relayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "relay",
		Short: "Send the events of the change feed to Service Bus until SIGTERM",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadRelay(p.environ)
			if err != nil {
				return err
			}
			return p.serve(cmd.Context(), operator.ProcessRelay, cfg.Log, "", cfg.OpsListen, cfg, func(given wiring.Params) fx.Option { return wiring.Relay(cfg, given) })
		},
	}
}
