package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func envCommand(out io.Writer) *cobra.Command {
	return onRunning(&cobra.Command{
		Use:   "env",
		Short: "Print environment variables for feedbox and curl",
		Long: `Print shell commands that point feedbox and curl to the running feedbox-dev:

  eval "$(feedbox-dev env)"
  feedbox lag
  curl -i "$API/api/contacts"

They set the FEEDBOX_ variables of its emulators, and API, OPS and ADMIN to the
addresses of the contacts API, the operations endpoints and the admin API of the
Service Bus emulator.`,
	}, func(_ context.Context, e *endpoints) error {
		// Without the consumers feedbox would ask the management API for them, and it expects that at the
		// address of the broker. They are not in variables, because the page asks the emulator.
		_, err := io.WriteString(out, exports("API", e.API, "OPS", e.Ops, "ADMIN", e.ServiceBusAdmin, "FEEDBOX_CONSUMERS", e.broker.consumer(e))+exports(e.variables()...))
		return err
	})
}

// variables returns the variables for store and broker: alternating names and values.
func (e *endpoints) variables() []string {
	var plaintext []string
	if e.Store != "" || e.Broker != "" { // servers of development rarely have certificates
		plaintext = []string{"FEEDBOX_PLAINTEXT_HOSTS", "*"}
	}
	return slices.Concat(e.store.variables(e), e.broker.variables(e), plaintext, []string{
		"FEEDBOX_COSMOS_ENDPOINT", e.CosmosEndpoint,
		"FEEDBOX_COSMOS_KEY", e.CosmosKey,
		"FEEDBOX_COSMOS_DATABASE", e.Database,
		"FEEDBOX_COSMOS_CONTAINER", e.Container,
		"FEEDBOX_COSMOS_LEASES", e.Leases,
		"FEEDBOX_COSMOS_PARKED", e.Parked,
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING", e.ServiceBusConnectionString,
		"FEEDBOX_SERVICEBUS_TOPIC", e.Topic,
	})
}

// environ returns the variables as NAME=value.
func (e *endpoints) environ() []string {
	pairs := append(e.variables(), "FEEDBOX_SERVICEBUS_NAMESPACE", "") // unset it, because it excludes a connection string
	environ := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		environ = append(environ, pairs[i]+"="+pairs[i+1])
	}
	return environ
}

// exports returns shell commands that set variables, given as alternating names and values.
// It omits variables without a value.
func exports(pairs ...string) string {
	var lines strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&lines, "export %s=%s\n", pairs[i], quote(pairs[i+1]))
		}
	}
	return lines.String()
}

// quote returns text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
