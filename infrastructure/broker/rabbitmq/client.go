package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/broker/internal/shared"
)

// Config is the address of a broker and the way to connect to it.
type Config struct {
	// URL is amqp://user:password@host:port/vhost, or amqps:// for TLS. Required. Several URLs,
	// separated by commas, are the members of one cluster: a connection that is lost is replaced by
	// one to the next member that replies. A comma within a URL is %2C.
	URL string
	// Name is the name of the connection in the tools of the broker. Default "feedbox".
	Name string
	// TLS replaces the TLS configuration. Default: verify the host name of each URL.
	TLS *tls.Config
	// Dial opens the network connection under TLS. Default: TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives when the broker accepts no messages, with its reason, and when it does again.
	// Default: slog.Default.
	Logger *slog.Logger
}

const (
	// dialTimeout bounds one attempt to connect, including TLS and login. The members of a cluster
	// share it, but each has at least memberTimeout.
	dialTimeout   = 15 * time.Second
	memberTimeout = 5 * time.Second
	// requestTimeout bounds the opening and preparation of a channel, and the wait for the reply to its
	// close. The requests are small and take a few round trips, so only a silent broker needs longer.
	requestTimeout = 15 * time.Second
	// closeTimeout bounds the wait for the reply to the close of a connection.
	closeTimeout = 2 * time.Second
	// declareTimeout bounds Declare, which makes a round trip for each of the 256 slots of each group.
	declareTimeout = 5 * time.Minute
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
	members []string     // URLs
	next    atomic.Int32 // the number of the member that is tried first
	shared  *shared.Resource[session]
	running sync.WaitGroup // goroutines that end with their connection
}

// session is one connection to the broker.
type session struct {
	*amqp.Connection
	client *Client
	socket *socket
	alarm  alarm

	unanswered atomic.Int32 // timeouts of sends since the last confirmation
}

// errSilent means that the broker did not reply to a request. The connection was closed then.
var errSilent = errors.New("the broker did not reply in time")

// NewClient checks cfg. It does no I/O; the first use connects.
func NewClient(cfg Config) (*Client, error) {
	if cfg.URL == "" {
		return nil, errors.New("rabbitmq: URL is required, for example amqp://user:password@host:5672/vhost")
	}
	members := strings.Split(cfg.URL, ",")
	for i, member := range members {
		members[i] = strings.TrimSpace(member)
		if _, err := amqp.ParseURI(members[i]); err != nil {
			return nil, fmt.Errorf("rabbitmq: parse URL %d of %d (amqp://user:password@host:5672/vhost): %w", i+1, len(members), err)
		}
	}
	cfg.Name = cmp.Or(cfg.Name, "feedbox")
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	c := &Client{cfg: cfg, members: members}
	c.shared = shared.New(c.dial, end)
	return c, nil
}

// connect returns the current connection, or a new one if it is lost.
func (c *Client) connect(ctx context.Context) (*session, error) {
	return c.shared.GetLive(ctx, func(s *session) bool { return s.IsClosed() || s.socket.aborted.Load() })
}

// open opens a channel and calls prepare, and closes the channel if prepare fails. The client's methods
// take no context, so open aborts the connection if ctx ends meanwhile, or after limit.
func (c *Client) open(ctx context.Context, limit time.Duration, prepare func(s *session, ch *amqp.Channel) error) (err error) {
	s, err := c.connect(ctx)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	stopAbort := context.AfterFunc(ctx, s.socket.abort)
	defer func() {
		if !stopAbort() && err != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}()
	ch, err := s.Channel()
	if err != nil {
		return err
	}
	if err = prepare(s, ch); err != nil {
		_ = ch.Close() // the error may have closed it already
	}
	return err
}

// closeChannel closes a channel. A broker that does not reply loses the connection, and with it the
// channel.
func (s *session) closeChannel(ch interface{ Close() error }) {
	defer time.AfterFunc(requestTimeout, s.socket.abort).Stop()
	_ = ch.Close() // it may be closed already
}

// dial connects to a member. It begins with the one after the last, because the last may accept
// connections and be silent afterwards.
func (c *Client) dial(ctx context.Context) (*session, error) {
	var faults []error
	for range c.members {
		member := c.members[int(c.next.Add(1)-1)%len(c.members)]
		s, err := c.dialMember(ctx, member)
		if err == nil {
			return s, nil
		}
		if len(c.members) > 1 {
			at, _ := amqp.ParseURI(member) // parsed before
			err = fmt.Errorf("%s: %w", net.JoinHostPort(at.Host, strconv.Itoa(at.Port)), err)
		}
		if faults = append(faults, err); ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connect: %w", errors.Join(faults...))
}

func (c *Client) dialMember(ctx context.Context, url string) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(dialTimeout/time.Duration(len(c.members)), memberTimeout), errSilent)
	defer cancel()
	s := &session{client: c}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.cfg.Name)
	var stopAbort func() bool
	var err error
	s.Connection, err = amqp.DialConfig(url, amqp.Config{
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
	switch {
	case stopAbort != nil && !stopAbort():
		if err == nil {
			_ = s.Close()
		}
		err = context.Cause(ctx) // because the library reports a refusal for any end of the handshake
	case errors.Is(err, amqp.ErrVhost): // also for a lost socket; it passes on the reply of a broker that refuses the virtual host
		err = fmt.Errorf("open the virtual host: %w", amqp.ErrClosed)
	}
	if err != nil {
		if s.socket != nil {
			s.socket.abort() // the client library leaves it open after some failures of the handshake
		}
		return nil, err
	}
	blockings := s.NotifyBlocked(make(chan amqp.Blocking, 1))
	c.running.Go(func() { s.watch(blockings) }) // until the connection ends, which closes blockings
	return s, nil
}

// end closes a connection. It is no error if the connection is lost already.
func end(_ context.Context, s *session) error {
	// CloseDeadline has no effect while heartbeats arrive, because each extends the deadline of reads.
	defer time.AfterFunc(closeTimeout, s.socket.abort).Stop()
	if err := s.CloseDeadline(time.Now().Add(closeTimeout)); err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}

// Close closes the connection. Operations in flight fail, and so do later ones.
func (c *Client) Close() error {
	defer c.running.Wait()
	return c.shared.Close(context.Background()) //nolint:forbidigo // every attempt to connect has a timeout
}
