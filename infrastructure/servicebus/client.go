package servicebus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// ClientConfig says how to reach a namespace: by ConnectionString, or by Namespace
// with Credential.
type ClientConfig struct {
	ConnectionString string                 // with key or signature; excludes the next two
	Namespace        string                 // host name, for example contoso.servicebus.windows.net
	Credential       azcore.TokenCredential // for Namespace

	// Dial, if set, opens the connection in place of TCP and TLS. Tests run over
	// in-memory pipes with it; production may run over web sockets.
	Dial func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	// TLS, if set, replaces the TLS configuration of the connection.
	TLS *tls.Config
	// ApplicationID is shown to the service with the user agent. Default "feedbox".
	ApplicationID string
}

// recoveryDelay is the pause between a failed call of the client and the one attempt
// it makes after restoring its connection.
//
// The client recovers a lost connection only as the first step of a second attempt
// (internal/amqpLinks.go, Retry and RecoverIfNeeded), so with no retry at all it would
// stay broken for good: one is the least. The delay must not be zero either, because
// the loop that refreshes the token repeats at once after a failed round
// (internal/namespace.go, startNegotiateClaimRenewer) and would spin through an outage.
const recoveryDelay = time.Second

// NewClient returns a client for publisher and subscriber. It does no I/O; the first
// use connects.
func NewClient(cfg ClientConfig) (*azservicebus.Client, error) {
	var errs []error
	switch {
	case cfg.ConnectionString == "" && cfg.Namespace == "":
		errs = append(errs, errors.New("give a connection string, or a namespace and a credential"))
	case cfg.ConnectionString != "" && cfg.Namespace != "":
		errs = append(errs, errors.New("give a connection string or a namespace, not both"))
	case cfg.Namespace != "" && cfg.Credential == nil:
		errs = append(errs, errors.New("a namespace needs a credential"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("service bus client: %w", errors.Join(errs...))
	}
	opts := &azservicebus.ClientOptions{
		TLSConfig:        cfg.TLS,
		ApplicationID:    cfg.ApplicationID,
		NewWebSocketConn: cfg.Dial,
		RetryOptions:     azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: recoveryDelay, MaxRetryDelay: 2 * recoveryDelay},
	}
	if opts.ApplicationID == "" {
		opts.ApplicationID = "feedbox"
	}
	var client *azservicebus.Client
	var err error
	if cfg.ConnectionString != "" {
		client, err = azservicebus.NewClientFromConnectionString(cfg.ConnectionString, opts)
	} else {
		client, err = azservicebus.NewClient(cfg.Namespace, cfg.Credential, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("service bus client: %w", err)
	}
	return client, nil
}
