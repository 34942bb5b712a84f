package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/fx"

	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

// relayCommandName is the command by which feedbox-dev runs itself as a relay.
const relayCommandName = "playground-relay"

// playgroundTimings make relays take over soon, so that there is something to see.
var playgroundTimings = []string{
	"FEEDBOX_LEASE_EXPIRY=3s", "FEEDBOX_LEASE_RENEW=1s", "FEEDBOX_LEASE_ACQUIRE=1s", "FEEDBOX_RELAY_POLL_MAX=50ms",
	"FEEDBOX_EVENT_TTL=" + playgroundEventTTL.String(),
}

const (
	// playgroundEventTTL bounds what hours of load leave in memory.
	playgroundEventTTL = 30 * time.Minute
	// playgroundDrainPoll is how often relays look for what operators want of parked keys.
	playgroundDrainPoll = 500 * time.Millisecond
)

// relayCommand is a relay as a process of its own, as feedbox relay is. It ends with its
// standard input, so that none is left over when the playground is killed.
func relayCommand(errOut io.Writer, environ []string) *cobra.Command {
	return &cobra.Command{
		Use:    relayCommandName,
		Short:  "Run a relay of the playground, configured by FEEDBOX_ variables",
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
			app := fx.New(wiring.Relay(cfg, wiring.Params{Log: log, Version: "dev", DrainPoll: playgroundDrainPoll}))
			return wiring.Run(ctx, app, func() {})
		},
	}
}

// relayProcess is the command of a relay that reaches the emulators at these addresses.
func (e *endpoints) relayProcess(name, cosmos, bus string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	cmd := exec.Command(self, relayCommandName)
	behind := *e
	behind.CosmosEndpoint = "http://" + cosmos + "/"
	behind.ServiceBusConnectionString = strings.Replace(e.ServiceBusConnectionString, brokerOf(e.ServiceBusConnectionString), "sb://"+bus, 1)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "FEEDBOX_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, playgroundTimings...)
	cmd.Env = append(cmd.Env, behind.environ()...)
	cmd.Env = append(cmd.Env, fmt.Sprintf("FEEDBOX_INSTANCE=%s", name), "FEEDBOX_LOG_LEVEL=error")
	return cmd
}
