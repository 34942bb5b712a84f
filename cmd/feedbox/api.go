package main

import (
	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/telemetry"
	"feedbox/infrastructure/wiring"
)

func (p *program) apiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "api",
		Short: "Serve the contacts API until SIGTERM",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := config.LoadAPI(p.environ)
			if err != nil {
				return err
			}
			log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: cfg.Log.Level, Format: cfg.Log.Format})
			if err != nil {
				return err
			}
			wiring.CollectLess(p.environ)
			sockets, err := wiring.Listen(ctx, cfg.Listen, cfg.OpsListen)
			if err != nil {
				return adviseListen(err)
			}
			log.InfoContext(ctx, "contacts API", "version", version(), "api", sockets.API.Addr().String(), "ops", sockets.Ops.Addr().String(), "config", cfg)
			return adviseStart(wiring.Run(ctx, fx.New(wiring.API(cfg, wiring.Surroundings{Sockets: sockets, Log: log, Version: version()})), nil), wiring.ProcessAPI)
		},
	}
}
