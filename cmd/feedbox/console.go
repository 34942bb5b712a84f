package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

func (p *program) consoleCommand() *cobra.Command {
	var actions bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the operations page until SIGTERM",
		Long: `Serve the operations page until SIGTERM: current state, ranges, parked keys with the
events held to keep their order, the latest events, the timeline of an aggregate,
members, and the doctor.

It uses the configuration of the relay and reads the metrics of
FEEDBOX_CONSOLE_METRICS. Without FEEDBOX_AUTH it listens on loopback addresses only.
It is read-only unless --actions is given. Then every action shows its effect and
asks for a reason first; the log records operator and reason.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadConsole(p.environ)
			relay, relayErr := config.LoadRelay(p.environ)
			if err := joinFaults(err, config.WithoutBroker(relayErr)); err != nil {
				return err
			}
			relay, err = p.chosen(cmd, relay)
			if err != nil {
				return err
			}
			return p.serveConsole(cmd.Context(), cfg, relay, actions)
		},
	}
	cmd.Flags().BoolVar(&actions, "actions", false, "allow changes: retry, skip, pause and others")
	return cmd
}

func (p *program) serveConsole(ctx context.Context, cfg *config.Console, relay *config.Relay, actions bool) error {
	log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: cfg.Log.Level, Format: cfg.Log.Format, NoColor: console.NoColour(p.environ)})
	if err != nil {
		return err
	}
	sockets, err := wiring.Listen(ctx, cfg.Listen, cfg.OpsListen)
	if err != nil {
		return console.Advise(err, "stop the process that uses the address, or set another one: FEEDBOX_CONSOLE_LISTEN, FEEDBOX_OPS_LISTEN")
	}
	page, err := wiring.NewPage(cfg, relay, wiring.Params{Sockets: sockets, Log: log, Version: console.Version()}, wiring.PageOptions{Actions: actions})
	if err != nil {
		return errors.Join(err, sockets.Close())
	}
	log.InfoContext(ctx, "operations page", "version", console.Version(), "address", "http://"+sockets.API.Addr().String()+cfg.Prefix+"/", "ops", sockets.Ops.Addr().String(), "actions", actions, "config", cfg)
	warn(ctx, log, relay.Warnings())
	return page.Run(ctx, sockets.API)
}

// joinFaults merges the faults of several configurations, each listed once.
func joinFaults(errs ...error) error {
	var all []config.Fault
	for _, err := range errs {
		wrong, ok := errors.AsType[*config.Error](err)
		if err != nil && !ok {
			return err
		}
		if !ok {
			continue
		}
		for _, f := range wrong.Faults {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &config.Error{Faults: all}
}
