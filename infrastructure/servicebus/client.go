package servicebus

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/servicebus/internal/wire"
)

// Client is a client of azservicebus that does not take a message for sent unless the
// broker has accepted it; see answers.
type Client struct{ *azservicebus.Client }

// ClientConfig says how to reach a namespace: by ConnectionString, or by Namespace
// with Credential. It serves publishers (NewClient) and the processors of package subscriber.
type ClientConfig struct {
	ConnectionString string                 // with key or signature; excludes the next two
	Namespace        string                 // host name, for example contoso.servicebus.windows.net
	Credential       azcore.TokenCredential // for Namespace

	// Dial, if set, opens the connection in place of TCP and TLS. Tests run over
	// in-memory pipes with it; production may run over web sockets. The host in args is
	// that of a web socket: wss://HOST/$servicebus/websocket.
	Dial func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	// TLS, if set, replaces the TLS configuration of the connection. Not used with Dial.
	TLS *tls.Config
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
func NewClient(cfg ClientConfig) (*Client, error) {
	namespace, err := wire.NewNamespace(wire.Config(cfg))
	if err != nil {
		return nil, err
	}
	opts := &azservicebus.ClientOptions{
		ApplicationID: "feedbox",
		NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			conn, err := namespace.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return watch(conn), nil
		},
		RetryOptions: azservicebus.RetryOptions{MaxRetries: 1, RetryDelay: recoveryDelay, MaxRetryDelay: 2 * recoveryDelay},
	}
	var client *azservicebus.Client
	if cfg.ConnectionString != "" {
		client, err = azservicebus.NewClientFromConnectionString(cfg.ConnectionString, opts)
	} else {
		client, err = azservicebus.NewClient(cfg.Namespace, cfg.Credential, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("service bus client: %w", err)
	}
	return &Client{client}, nil
}
