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

// Config says how to reach a broker.
type Config struct {
	// URL is amqp://user:password@host:port/vhost, or amqps:// for TLS. Required.
	URL string
	// Name is shown by the broker for the connection. Default "feedbox".
	Name string
	// TLS replaces the configuration of a TLS connection. Default: that of the host's name.
	TLS *tls.Config
	// Dial opens the connection below TLS. Default: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// dialTimeout bounds one try to connect, with TLS and login.
	dialTimeout = 15 * time.Second
	// writeTimeout bounds a write to the socket. A broker without memory or disk stops reading
	// from those who publish.
	writeTimeout = 10 * time.Second
	// heartbeat is how often each side shows that it lives; twice that without a word is the end.
	heartbeat = 10 * time.Second
)

// Client is a connection that is opened when it is needed, and again after it was lost. It is
// safe for concurrent use.
type Client struct {
	cfg     Config
	shared  *shared.Shared[session]
	running sync.WaitGroup // goroutines that end with their connection
}

// session is one connection to the broker, from its opening to its end.
type session struct {
	*amqp.Connection
	client  *Client
	socket  *socket
	blocked atomic.Pointer[string] // why the broker takes nothing for now; nil: it does
}

// NewClient checks cfg. It does no I/O; the first use connects.
func NewClient(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		return nil, errors.New("rabbitmq: the URL is missing, for example amqp://user:password@host:5672/vhost")
	}
	if _, err := amqp.ParseURI(cfg.URL); err != nil {
		return nil, fmt.Errorf("rabbitmq: the URL (amqp://user:password@host:5672/vhost): %w", err)
	}
	cfg.Name = cmp.Or(cfg.Name, "feedbox")
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	c := &Client{cfg: cfg}
	c.shared = shared.NewShared(c.dial, end)
	return c, nil
}

// connect returns a connection that is not known to be lost, or a new one.
func (c *Client) connect(ctx context.Context) (*session, error) {
	return c.shared.GetLive(ctx, func(s *session) bool { return s.IsClosed() })
}

// open opens a channel and prepares it, which stays open unless that fails. Its requests know no
// context: if ctx ends meanwhile, it ends the connection.
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
		_ = ch.Close() // it may have ended for that error
	}
	return err
}

func (c *Client) dial(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s := &session{client: c}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.cfg.Name)
	var leave func() bool
	var err error
	s.Connection, err = amqp.DialConfig(c.cfg.URL, amqp.Config{
		Heartbeat: heartbeat, Properties: properties, TLSClientConfig: c.cfg.TLS,
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := c.cfg.Dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			s.socket = &socket{Conn: conn}
			leave = context.AfterFunc(ctx, s.socket.abort) // the handshake knows no context
			return s.socket, nil
		},
	})
	if leave != nil && !leave() && err == nil {
		_ = s.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	blockings := s.NotifyBlocked(make(chan amqp.Blocking, 1))
	c.running.Go(func() { // the channel is closed when the connection ends
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

// end closes a connection, unless it is lost already.
func end(_ context.Context, s *session) error {
	if err := s.CloseDeadline(time.Now().Add(2 * time.Second)); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}

// Close ends the connection. What is under way fails; so does every later use.
func (c *Client) Close() error {
	defer c.running.Wait()
	return c.shared.Close(context.Background()) //nolint:forbidigo // each try to connect has its limit
}
