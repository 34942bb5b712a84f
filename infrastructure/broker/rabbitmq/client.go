package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/broker/internal/shared"
)

// Config is the address of a broker and the way to connect to it.
type Config struct {
	// URL is amqp://user:password@host:port/vhost, or amqps:// for TLS. Required.
	URL string
	// Name is the name of the connection in the tools of the broker. Default "feedbox".
	Name string
	// TLS replaces the TLS configuration. Default: verify the host name of URL.
	TLS *tls.Config
	// Dial opens the network connection under TLS. Default: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// dialTimeout bounds one attempt to connect, including TLS and login.
	dialTimeout = 15 * time.Second
	// writeTimeout bounds a write to the socket, because a broker that is short of memory or disk
	// stops reading from publishers.
	writeTimeout = 10 * time.Second
	// heartbeat is the interval of heartbeats. After two intervals without data the connection is lost.
	heartbeat = 10 * time.Second
)

// Client is a connection to a broker. It connects on first use and reconnects after a loss. It is safe
// for concurrent use.
type Client struct {
	cfg     Config
	shared  *shared.Resource[session]
	running sync.WaitGroup // goroutines that end with their connection
}

// session is one connection to the broker.
type session struct {
	*amqp.Connection
	client  *Client
	socket  *socket
	blocked atomic.Pointer[string] // why the broker accepts no messages; nil if it does
}

// NewClient checks cfg. It does no I/O; the first use connects.
func NewClient(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		return nil, errors.New("rabbitmq: URL is required, for example amqp://user:password@host:5672/vhost")
	}
	if _, err := amqp.ParseURI(cfg.URL); err != nil {
		return nil, fmt.Errorf("rabbitmq: parse URL (amqp://user:password@host:5672/vhost): %w", err)
	}
	cfg.Name = cmp.Or(cfg.Name, "feedbox")
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	c := &Client{cfg: cfg}
	c.shared = shared.New(c.dial, end)
	return c, nil
}

// connect returns the current connection, or a new one if it is lost.
func (c *Client) connect(ctx context.Context) (*session, error) {
	return c.shared.GetLive(ctx, func(s *session) bool { return s.IsClosed() })
}

// open opens a channel and calls prepare, and closes the channel if prepare fails. The client's methods
// take no context, so open aborts the connection if ctx ends meanwhile.
func (c *Client) open(ctx context.Context, prepare func(s *session, ch *amqp.Channel) error) error {
	s, err := c.connect(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, s.socket.abort)()
	ch, err := s.Channel()
	if err != nil {
		return err
	}
	if err = prepare(s, ch); err != nil {
		_ = ch.Close() // the error may have closed it already
	}
	return err
}

func (c *Client) dial(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s := &session{client: c}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.cfg.Name)
	var stopAbort func() bool
	var err error
	s.Connection, err = amqp.DialConfig(c.cfg.URL, amqp.Config{
		Heartbeat: heartbeat, Properties: properties, TLSClientConfig: c.cfg.TLS,
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := c.cfg.Dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			s.socket = &socket{Conn: conn}
			stopAbort = context.AfterFunc(ctx, s.socket.abort) // the handshake takes no context
			return s.socket, nil
		},
	})
	if stopAbort != nil && !stopAbort() && err == nil {
		_ = s.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	blockings := s.NotifyBlocked(make(chan amqp.Blocking, 1))
	c.running.Go(func() { // until the connection ends, which closes blockings
		for b := range blockings {
			if b.Active {
				s.blocked.Store(&b.Reason)
			} else {
				s.blocked.Store(nil)
			}
		}
	})
	return s, nil
}

// end closes a connection. It is no error if the connection is lost already.
func end(_ context.Context, s *session) error {
	if err := s.CloseDeadline(time.Now().Add(2 * time.Second)); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}

// Close closes the connection. Operations in flight fail, and so do later ones.
func (c *Client) Close() error {
	defer c.running.Wait()
	return c.shared.Close(context.Background()) //nolint:forbidigo // every attempt to connect has a timeout
}
