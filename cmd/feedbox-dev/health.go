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

// healthTimeout bounds the wait for the reply of one emulator.
const healthTimeout = 5 * time.Second

func healthCommand(out io.Writer) *cobra.Command {
	p := &place{}
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check that the running emulators answer: exit code 0 or 1",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.findLiving(cmd.Context())
			if usage, ok := errors.AsType[usageError](err); ok {
				return usage.error // because a container health check allows 0 and 1 only
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

// check sends a request to both emulators. Any reply below 500 is healthy, also a refusal
// because the key is missing. The certificate is not verified, because this process does
// not know the file with the trusted one.
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
