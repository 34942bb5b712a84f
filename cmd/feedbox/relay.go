package main

import (
	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/config"
	"feedbox/infrastructure/telemetry"
	"feedbox/infrastructure/wiring"
)

func (p *program) relayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "relay",
		Short: "Send the events of the change feed to Service Bus until SIGTERM",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			cfg, err := config.LoadRelay(p.environ)
			if err != nil {
				return err
			}
			log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: cfg.Log.Level, Format: cfg.Log.Format})
			if err != nil {
				return err
			}
			wiring.CollectLess(p.environ)
			sockets, err := wiring.Listen(ctx, "", cfg.OpsListen)
			if err != nil {
				return adviseListen(err)
			}
			log.InfoContext(ctx, "relay", "version", version(), "ops", sockets.Ops.Addr().String(), "config", cfg)
			return adviseStart(wiring.Run(ctx, fx.New(wiring.Relay(cfg, wiring.Surroundings{Sockets: sockets, Log: log, Version: version()})), nil), wiring.ProcessRelay)
		},
	}
}
