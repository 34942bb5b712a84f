package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/process/telemetry"
)

// Params are what a process is given besides its configuration. The zero value of each
// field but the sockets and the log is the production default.
type Params struct {
	Sockets
	Log     *slog.Logger
	Version string

	// CosmosTransport carries requests to Cosmos DB. Default: the SDK's own.
	CosmosTransport policy.Transporter
	// ServiceBusDial opens connections to Service Bus. Default: TCP and TLS.
	ServiceBusDial func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	// Credential is used where no key is configured. Default:
	// DefaultAzureCredential.
	Credential azcore.TokenCredential
	// Telemetry is shared by the parts of one process, whose ops endpoint then shows
	// the metrics of all; its owner shuts it down after them. Default: each part has
	// its own.
	Telemetry *telemetry.Telemetry
	// Home serves GET / of the contacts API. Default: 404.
	Home http.Handler
	// DrainPoll is the time between two looks for what operators want of parked keys.
	// Default 5 s. It is no setting of the configuration: it costs one small query each
	// time, and bounds only how long feedbox parked retry waits before something happens.
	DrainPoll time.Duration
}

// Sockets are the bound listeners of a process. They are bound before anything
// else starts, so that a taken port is the first thing a user learns.
type Sockets struct {
	API net.Listener // nil in the relay
	Ops net.Listener
}

// Listen binds the addresses; an empty one is left out. The error names the
// address that could not be had, and nothing stays bound then.
func Listen(ctx context.Context, api, ops string) (Sockets, error) {
	var s Sockets
	var lc net.ListenConfig
	for _, one := range []struct {
		addr string
		into *net.Listener
	}{{api, &s.API}, {ops, &s.Ops}} {
		if one.addr == "" {
			continue
		}
		l, err := lc.Listen(ctx, "tcp", one.addr)
		if err != nil {
			return Sockets{}, errors.Join(fmt.Errorf("listen on %s: %w", one.addr, err), s.Close())
		}
		*one.into = l
	}
	return s, nil
}

// Close releases sockets that nothing serves yet.
func (s Sockets) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.API, s.Ops} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}
