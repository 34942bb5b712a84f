package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout bounds the wait for an answer of one emulator.
const healthTimeout = 5 * time.Second

func healthCommand(out io.Writer) *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Say whether the running emulators answer, for containers and scripts: exit code 0 or 1",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.findLiving(cmd.Context())
			if usage, ok := errors.AsType[usageError](err); ok {
				return usage.error // a container knows 0 and 1 only
			}
			if err != nil {
				return err
			}
			if err := e.check(cmd.Context()); err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, "healthy")
			return err
		},
	}
	p.register(cmd.Flags())
	return cmd
}

// check asks both emulators. That one answers is enough, for example that a key is
// missing; and its certificate, which nobody here has been told to trust, does not matter.
func (e *endpoints) check(ctx context.Context) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: healthTimeout}
	for name, url := range map[string]string{"Cosmos DB": e.CosmosEndpoint, "Service Bus": e.ServiceBusAdmin + "/health"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		reply, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("the %s emulator does not answer: %w", name, err)
		}
		_ = reply.Body.Close()
		if reply.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("the %s emulator answers %s", name, reply.Status)
		}
	}
	return nil
}
