package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/console"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

// relayCommandName is the hidden subcommand with which feedbox-dev starts itself as a relay.
const relayCommandName = "playground-relay"

// playgroundTimings shorten leases, because a takeover at the defaults takes too long to watch.
var playgroundTimings = []string{
	"FEEDBOX_LEASE_EXPIRY=3s", "FEEDBOX_LEASE_RENEW=1s", "FEEDBOX_LEASE_ACQUIRE=1s", "FEEDBOX_RELAY_POLL_MAX=50ms", "FEEDBOX_PARKED_POLL=500ms",
	"FEEDBOX_EVENT_TTL=" + playgroundEventTTL.String(),
}

// playgroundEventTTL is short because the emulators keep the events of hours of load in memory.
const playgroundEventTTL = 30 * time.Minute

// relayCommand runs a relay as feedbox relay does. It ends when its standard input ends, so
// that no relay survives a killed playground.
func relayCommand(errOut io.Writer, environ []string) *cobra.Command {
	return &cobra.Command{
		Use:    relayCommandName,
		Short:  "Run a relay of the playground",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, end := context.WithCancel(cmd.Context())
			defer end()
			go func() {
				defer end()
				_, _ = io.Copy(io.Discard, os.Stdin)
			}()
			cfg, err := config.LoadRelay(environ)
			if err != nil {
				return err
			}
			log, err := telemetry.NewLogger(errOut, &telemetry.LogOptions{Level: cfg.Log.Level, NoColor: true})
			if err != nil {
				return err
			}
			// Another process may have taken the port while no relay had this place.
			ops, err := bindOne(ctx, "ops", cfg.OpsListen, false, io.Discard)
			if err != nil {
				return err
			}
			app := fx.New(wiring.Relay(cfg, wiring.Params{Log: log, Version: console.Version(), Sockets: wiring.Sockets{Ops: ops}}))
			return wiring.Run(ctx, app, func() {})
		},
	}
}

// relayProcess returns the command of a relay that uses the emulators at these addresses.
func (e *endpoints) relayProcess(place int, name, cosmos, bus string) *exec.Cmd {
	proxied := *e
	proxied.CosmosEndpoint = "http://" + cosmos + "/"
	proxied.ServiceBusConnectionString = strings.Replace(e.ServiceBusConnectionString, brokerOf(e.ServiceBusConnectionString), "sb://"+bus, 1)
	return relayWith(slices.Concat(playgroundTimings, proxied.environ(), []string{"FEEDBOX_INSTANCE=" + name, "FEEDBOX_LOG_LEVEL=error", "FEEDBOX_OPS_LISTEN=" + e.relayOps[place]}))
}

// relayWith returns the command of a relay with these settings, and none of this process.
func relayWith(settings []string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, relayCommandName)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, config.Prefix) }), settings...)
	return cmd
}
