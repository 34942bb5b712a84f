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

// Conn is one AMQP connection, with the tokens put on it and the AMQP sessions of its
// links. Safe for concurrent use.
type Conn struct {
	namespace *Namespace
	log       *slog.Logger
	amqp      *amqp.Conn
	end       context.CancelFunc // ends refresh
	tasks     sync.WaitGroup     // refresh and answers
	claimed   chan struct{}      // capacity 1: there is one more token to refresh

	mu       sync.Mutex // guards what follows
	sessions []*session
	nodes    map[string]*shared.Resource[requests]
	expires  map[string]time.Time // of the token of each path
}

// ConnectTimeout bounds connecting, up to a link: some 10 round trips.
const ConnectTimeout = 30 * time.Second

// Open opens a connection. log takes what it survives.
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
	c.amqp, err = amqp.NewConn(ctx, gather(socket), &amqp.ConnOptions{
		HostName: namespace.host, SASLType: amqp.SASLTypeAnonymous(),
		Properties: map[string]any{"product": "feedbox", "platform": runtime.GOOS, "framework": runtime.Version(), "user-agent": "feedbox"},
	})
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err) // the socket is closed
	}
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	c.tasks.Go(func() { c.refresh(alive) })
	return c, nil
}

// Claim puts a token for a path, and from then on new ones before they expire.
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

// Tokens are put anew after half of the time they hold, within these bounds.
const refreshSoonest, refreshLatest = 30 * time.Second, 24 * time.Hour

// refresh puts new tokens before the old ones expire.
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
			if err := c.Claim(ctx, path); err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "a token was not renewed", "path", path, "error", err)
			}
		}
	}
}

// nextRefresh says when to put which tokens again.
func (c *Conn) nextRefresh() (pause time.Duration, paths []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause = refreshLatest
	for path, expires := range c.expires {
		if !expires.IsZero() {
			paths = append(paths, path)
			pause = min(pause, max(time.Until(expires)/2, refreshSoonest))
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

// Close ends the connection and waits for its goroutines. What is not settled comes again.
func (c *Conn) Close() {
	c.end()
	_ = c.amqp.Close() // fails if it is lost already
	c.tasks.Wait()
}

// Broken reports whether an error shows that the connection has ended, or an AMQP session
// on it: it has to be replaced.
func Broken(err error) bool {
	_, conn := errors.AsType[*amqp.ConnError](err)
	_, session := errors.AsType[*amqp.SessionError](err)
	return conn || session
}

// HasCondition reports whether the broker gave this reason.
func HasCondition(err error, condition amqp.ErrCond) bool {
	told, ok := errors.AsType[*amqp.Error](err)
	return ok && told.Condition == condition
}
