package servicebus

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
)

// ClientConfig is the address and credential of a namespace: either ConnectionString, or Namespace with
// Credential. Publishers (NewClient) and the processors of package subscriber use it.
type ClientConfig struct {
	ConnectionString string                 // with a key or signature; excludes Namespace and Credential
	Namespace        string                 // host name, for example contoso.servicebus.windows.net
	Credential       azcore.TokenCredential // for Namespace

	// Dial, if set, replaces TCP and TLS, for example by web sockets or by in-memory pipes in tests.
	// The host in args is the URL of a web socket: wss://HOST/$servicebus/websocket.
	Dial func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error)
	// TLS, if set, replaces the TLS configuration of the connection. Not used with Dial.
	TLS *tls.Config
}

// Client is a connection to a namespace that publishers share. It reconnects after a loss. It is safe
// for concurrent use.
type Client struct{ shared *shared.Resource[wire.Conn] }

// NewClient returns a client. It does no I/O; the first use connects.
func NewClient(cfg ClientConfig) (*Client, error) {
	namespace, err := wire.NewNamespace(wire.Config(cfg))
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*wire.Conn, error) {
		conn, err := wire.Open(ctx, namespace, slog.New(slog.DiscardHandler)) // a token that was not renewed fails the next send
		if err != nil {
			return nil, fmt.Errorf("service bus: %w", err)
		}
		return conn, nil
	}
	return &Client{shared.New(open, func(_ context.Context, c *wire.Conn) error { c.Close(); return nil })}, nil
}

// Close closes the connection and the links of all publishers. It waits for the goroutines of the
// connection.
func (c *Client) Close(ctx context.Context) error {
	if err := c.shared.Close(ctx); err != nil {
		return fmt.Errorf("close the service bus client: %w", err)
	}
	return nil
}

// connection returns the current connection, or a new one if it is lost.
func (c *Client) connection(ctx context.Context) (*wire.Conn, error) {
	return c.shared.GetLive(ctx, (*wire.Conn).Ended)
}
