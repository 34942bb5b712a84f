package servicebus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Client is a client of azservicebus that does not take a message for sent unless the
// broker has accepted it; see answers.
type Client struct{ *azservicebus.Client }

// ClientConfig says how to reach a namespace: by ConnectionString, or by Namespace
// with Credential.
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
	var err error
	switch {
	case cfg.ConnectionString == "" && cfg.Namespace == "":
		err = errors.New("give a connection string, or a namespace and a credential")
	case cfg.ConnectionString != "" && cfg.Namespace != "":
		err = errors.New("give a connection string or a namespace, not both")
	case cfg.Namespace != "" && cfg.Credential == nil:
		err = errors.New("a namespace needs a credential")
	}
	if err != nil {
		return nil, fmt.Errorf("service bus client: %w", err)
	}
	dial := cfg.Dial
	if dial == nil {
		dial = cfg.dial
	}
	opts := &azservicebus.ClientOptions{
		ApplicationID: "feedbox",
		NewWebSocketConn: func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
			conn, err := dial(ctx, args)
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

// dial connects as the client does without a hook (go-amqp conn.go, Dial).
func (cfg *ClientConfig) dial(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
	address, secure, err := cfg.address(args.Host)
	switch {
	case err != nil:
		return nil, fmt.Errorf("service bus client: %w", err)
	case !secure:
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{Config: cfg.TLS}).DialContext(ctx, "tcp", address) // asks for the server name of the host
}

// address returns where to connect to instead of to a web socket: by TLS to port 5671, or
// for an emulator by TCP to port 5672, unless the host names a port.
func (cfg *ClientConfig) address(webSocket string) (address string, secure bool, err error) {
	u, err := url.Parse(webSocket)
	if err != nil {
		return "", false, err
	}
	port := "5671"
	if secure = !emulated(cfg.ConnectionString); !secure {
		port = "5672"
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), secure, nil
}

// emulated reports whether a connection string, which the client has accepted, asks for
// a connection without TLS.
func emulated(connectionString string) (on bool) {
	for part := range strings.SplitSeq(connectionString, ";") {
		if name, value, _ := strings.Cut(part, "="); strings.EqualFold(name, "UseDevelopmentEmulator") {
			on, _ = strconv.ParseBool(value)
		}
	}
	return on
}
