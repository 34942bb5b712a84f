package wiring

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/process/telemetry"
)

// Params configures a process besides its configuration. Sockets and log are required; the
// zero value of each other field is the production default.
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
	// Telemetry is shared by API and relay in one process, so that one ops endpoint has the
	// metrics of both; its owner shuts it down after them. Default: each has its own.
	Telemetry *telemetry.Telemetry
	// Home serves GET / of the contacts API. Default: 404.
	Home http.Handler
}

// Sockets holds the bound listeners of a process. They are bound before anything else
// starts, so that a port in use is reported first.
type Sockets struct {
	API net.Listener // of the API or the operations page; nil in the relay
	Ops net.Listener
}

// Listen binds the addresses; it skips an empty one. If it fails, the error has the address,
// and no address stays bound.
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

// Close closes sockets that are not served yet.
func (s Sockets) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.API, s.Ops} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}
