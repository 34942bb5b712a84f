package main

import (
	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/wiring"
)

func (p *program) apiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "api",
		Short: "Serve the contacts API until SIGTERM",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadAPI(p.environ)
			if err != nil {
				return err
			}
			return p.serve(cmd.Context(), operator.ProcessAPI, cfg.Log, cfg.Listen, cfg.OpsListen, cfg, func(given wiring.Params) fx.Option { return wiring.API(cfg, given) })
		},
	}
}
