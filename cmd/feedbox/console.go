package main

import (
	"context"
	"errors"
	"fmt"
	"net"

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
		Long: `Serve the operations page until SIGTERM: how things stand now, ranges, parked keys and
what order is kept behind them, the life of an aggregate, members, and the doctor.

It reads what the other commands read, with the configuration of the relay, and the
metrics of FEEDBOX_CONSOLE_METRICS. It is reachable from this machine only, unless
FEEDBOX_AUTH says who may look. It only shows, unless --actions is given; then every
act shows first what it would do, asks why, and stands in the log with who and why.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.LoadConsole(p.environ)
			relay, relayErr := config.LoadRelay(p.environ)
			if err := joinFaults(err, config.WithoutBroker(relayErr)); err != nil {
				return err
			}
			return p.serveConsole(cmd.Context(), cfg, relay, actions)
		},
	}
	cmd.Flags().BoolVar(&actions, "actions", false, "let those who may change what they see: retry, skip, pause and the like")
	return cmd
}

func (p *program) serveConsole(ctx context.Context, cfg *config.Console, relay *config.Relay, actions bool) error {
	log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: cfg.Log.Level, Format: cfg.Log.Format, NoColor: console.NoColour(p.environ)})
	if err != nil {
		return err
	}
	page, err := wiring.NewPage(cfg, relay, wiring.Params{Log: log, Version: version()}, wiring.PageOptions{Actions: actions})
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return console.Advise(fmt.Errorf("listen on %s: %w", cfg.Listen, err), "stop what uses the address, or give another one: FEEDBOX_CONSOLE_LISTEN")
	}
	log.InfoContext(ctx, "operations page", "version", version(), "address", "http://"+listener.Addr().String()+cfg.Prefix+"/", "actions", actions, "config", cfg)
	return page.Run(ctx, listener)
}

// joinFaults lists the faults of two configurations, each once.
func joinFaults(errs ...error) error {
	var all []config.Fault
	for _, err := range errs {
		wrong, ok := errors.AsType[*config.Error](err)
		if err != nil && !ok {
			return err
		}
		if ok {
			all = appendNew(all, wrong.Faults)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &config.Error{Faults: all}
}
