package main

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

// serve runs a process until SIGTERM, on the addresses api, which may be empty, and ops.
func (p *program) serve(ctx context.Context, process operator.Process, logged config.Log, api, ops string, cfg any, module func(wiring.Params) fx.Option) error {
	log, err := telemetry.NewLogger(p.errOut, &telemetry.LogOptions{Level: logged.Level, Format: logged.Format, NoColor: console.NoColour(p.environ)})
	if err != nil {
		return err
	}
	wiring.CollectLess(p.environ)
	sockets, err := wiring.Listen(ctx, api, ops)
	if err != nil {
		return adviseListen(err)
	}
	args := []any{"version", version(), "ops", sockets.Ops.Addr().String(), "config", cfg}
	if sockets.API != nil {
		args = append(args, "api", sockets.API.Addr().String())
	}
	log.InfoContext(ctx, started[process], args...)
	return adviseStart(wiring.Run(ctx, fx.New(module(wiring.Params{Sockets: sockets, Log: log, Version: version()})), nil), process)
}

// started is what the first line of a process's log says.
var started = map[operator.Process]string{operator.ProcessAPI: "contacts API", operator.ProcessRelay: "relay"}

// adviseListen adds what to do about an address that cannot be had.
func adviseListen(err error) error {
	return console.Advise(err, "stop what uses the address, or give another one: FEEDBOX_API_LISTEN, FEEDBOX_OPS_LISTEN")
}

// adviseStart adds what to do about a process that could not start or go on.
func adviseStart(err error, process operator.Process) error {
	if err == nil || errors.Is(err, wiring.ErrEnded) { // the log says why it ended
		return err
	}
	return console.Advise(err, "feedbox doctor --process "+string(process)+" examines the surroundings and says what to change")
}
