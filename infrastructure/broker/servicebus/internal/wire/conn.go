package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/shared"
)

// Conn is one AMQP connection with its tokens and AMQP sessions. It is safe for concurrent use.
type Conn struct {
	namespace *Namespace
	log       *slog.Logger
	amqp      *amqp.Conn
	end       context.CancelFunc // ends refresh
	tasks     sync.WaitGroup     // refresh and the receivers of responses
	claimed   chan struct{}      // capacity 1: refresh must consider a new token

	mu       sync.Mutex // guards the fields below
	sessions []*session
	nodes    map[string]*shared.Resource[requests]
	expires  map[string]time.Time // of tokens, by path
}

// ConnectTimeout bounds connecting up to an attached link, which takes about 10 round trips.
const ConnectTimeout = 30 * time.Second

// Open opens a connection. log receives failures that the connection survives.
func Open(ctx context.Context, namespace *Namespace, log *slog.Logger) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	socket, err := namespace.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &Conn{
		namespace: namespace, log: log, claimed: make(chan struct{}, 1),
		nodes: map[string]*shared.Resource[requests]{}, expires: map[string]time.Time{},
	}
	c.amqp, err = amqp.NewConn(ctx, coalesce(socket), &amqp.ConnOptions{
		HostName: namespace.host, SASLType: amqp.SASLTypeAnonymous(),
		Properties: map[string]any{"product": "feedbox", "platform": runtime.GOOS, "framework": runtime.Version(), "user-agent": "feedbox"},
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err) // go-amqp has closed the socket
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	c.tasks.Go(func() { c.refresh(alive) })
	return c, nil
}

// Claim puts a token for a path, and the connection refreshes it from then on.
func (c *Conn) Claim(ctx context.Context, path string) error {
	t, err := c.namespace.token(ctx, path)
	if err != nil {
		return err
	}
	_, err = c.Request(ctx, claims, map[string]any{"operation": "put-token", "type": t.kind, "name": t.audience}, t.text)
	if err != nil {
		return fmt.Errorf("put a token for %s: %w", path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.expires[path]; !known {
		select {
		case c.claimed <- struct{}{}:
		default:
		}
	}
	c.expires[path] = t.expiresAt
	return nil
}

// A token is refreshed after half of its remaining validity, within these bounds.
const minRefresh, maxRefresh = 30 * time.Second, 24 * time.Hour

// refresh puts new tokens before the current ones expire, until ctx ends.
func (c *Conn) refresh(ctx context.Context) {
	for {
		pause, paths := c.nextRefresh()
		select {
		case <-time.After(pause):
		case <-c.claimed:
			continue
		case <-ctx.Done():
			return
		}
		for _, path := range paths {
			if err := c.reclaim(ctx, path); err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "token not refreshed", "path", path, "error", err)
			}
		}
	}
}

// reclaim is Claim with a timeout, because a credential may wait without a limit for its service.
func (c *Conn) reclaim(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	return c.Claim(ctx, path)
}

// nextRefresh returns the time until the next refresh and the paths to refresh.
func (c *Conn) nextRefresh() (pause time.Duration, paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause = maxRefresh
	for path, expires := range c.expires {
		if !expires.IsZero() {
			paths = append(paths, path)
			pause = min(pause, max(time.Until(expires)/2, minRefresh))
		}
	}
	return pause, paths
}

// Ended reports whether the connection is known to be lost.
func (c *Conn) Ended() bool {
	select {
	case <-c.amqp.Done():
		return true
	default:
		return false
	}
}

// Close closes the connection and waits for its goroutines. The broker redelivers unsettled messages.
func (c *Conn) Close() {
	c.end()
	_ = c.amqp.Close() // fails if the connection is lost
	c.tasks.Wait()
}

// Broken reports whether an error means that the connection or one of its AMQP sessions has ended. The
// connection must then be replaced.
func Broken(err error) bool {
	_, conn := errors.AsType[*amqp.ConnError](err)
	_, session := errors.AsType[*amqp.SessionError](err)
	return conn || session
}

// HasCondition reports whether err is an AMQP error with this condition.
func HasCondition(err error, condition amqp.ErrCond) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Condition == condition
}
