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

// Client is the connection of publishers to a namespace, one for all of them. It is made
// anew when it is lost. Safe for concurrent use.
type Client struct{ shared *shared.Shared[wire.Conn] }

// NewClient returns a client. It does no I/O; the first use connects.
func NewClient(cfg ClientConfig) (*Client, error) {
	namespace, err := wire.NewNamespace(wire.Config(cfg))
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*wire.Conn, error) {
		conn, err := wire.Open(ctx, namespace, slog.New(slog.DiscardHandler)) // a token that is not renewed shows at the next send
		if err != nil {
			return nil, fmt.Errorf("service bus: %w", err)
		}
		return conn, nil
	}
	return &Client{shared.NewShared(open, func(_ context.Context, c *wire.Conn) error { c.Close(); return nil })}, nil
}

// Close ends the connection, and with it the links of all publishers. It waits for the
// goroutines of the connection.
func (c *Client) Close(ctx context.Context) error {
	if err := c.shared.Close(ctx); err != nil {
		return fmt.Errorf("close the service bus client: %w", err)
	}
	return nil
}

// connection returns a connection that is not known to be lost, or a new one.
func (c *Client) connection(ctx context.Context) (*wire.Conn, error) {
	return c.shared.GetLive(ctx, (*wire.Conn).Ended)
}
