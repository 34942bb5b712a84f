package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
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

// serve runs a process until SIGTERM, on the addresses api and ops. api may be empty.
func (p *program) serve(ctx context.Context, process operator.Process, logged config.Log, api, ops string, cfg configured, module func(wiring.Params) fx.Option) error {
	log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: logged.Level, Format: logged.Format, NoColor: console.NoColour(p.environ)})
	if err != nil {
		return err
	}
	wiring.CollectLess(p.environ)
	sockets, err := wiring.Listen(ctx, api, ops)
	if err != nil {
		return console.Advise(err, "stop the process that uses the address, or set another one: FEEDBOX_API_LISTEN, FEEDBOX_OPS_LISTEN")
	}
	args := []any{"version", console.Version(), "ops", sockets.Ops.Addr().String(), "config", cfg}
	if sockets.API != nil {
		args = append(args, "api", sockets.API.Addr().String())
	}
	log.InfoContext(ctx, started[process], args...)
	warn(ctx, log, cfg.Warnings())
	return adviseStart(wiring.Run(ctx, fx.New(module(wiring.Params{Sockets: sockets, Log: log, Version: console.Version()})), nil), process)
}

// configured is the configuration of a process.
type configured interface{ Warnings() []config.Setting }

// warn logs the risks of a configuration.
func warn(ctx context.Context, log *slog.Logger, risky []config.Setting) {
	for _, s := range risky {
		log.WarnContext(ctx, "risky configuration", "variable", s.Name, "risk", s.Warning)
	}
}

// started has the first log message of each process.
var started = map[operator.Process]string{operator.ProcessAPI: "contacts API", operator.ProcessRelay: "relay", processPush: "push", processFeed: "feed"}

// adviseStart adds the next step to an error that kept a process from starting or ended it.
func adviseStart(err error, process operator.Process) error {
	if err == nil || errors.Is(err, wiring.ErrEnded) { // the log has the cause
		return err
	}
	if process == processPush || process == processFeed { // the doctor does not examine them
		return console.Advise(err, "feedbox config check "+string(process)+" checks the configuration")
	}
	return console.Advise(err, "feedbox doctor --process "+string(process)+" checks the environment and prints fixes")
}
