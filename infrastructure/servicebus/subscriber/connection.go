package subscriber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/servicebus"
)

// connection is one AMQP connection, the tokens put on it, and its links to $management.
// Safe for concurrent use. Its turns are channels, not mutexes: they are held while the
// broker is asked.
type connection struct {
	namespace *servicebus.Namespace
	source    Source
	log       *slog.Logger

	amqp   *amqp.Conn
	claims *requests          // to $cbs
	end    context.CancelFunc // ends refresh
	tasks  sync.WaitGroup     // refresh and answers

	turn       chan struct{} // capacity 1: held to open management
	management *requests     // nil until it is needed; guarded by turn

	mu       sync.Mutex // guards what follows
	sessions []*amqpSession
	expires  map[string]time.Time // of the token of each path
}

// amqpSession is an AMQP session for links of receivers. It attaches one at a time: go-amqp
// frees the handle of a link that the broker refuses or detaches before it has answered
// that (session.go, mux), and another attach could take it too soon.
type amqpSession struct {
	*amqp.Session
	links     int // guarded by connection.mu, as is what follows
	attaching bool
}

const (
	// connectTimeout bounds connecting, up to the token.
	connectTimeout = 30 * time.Second
	// linksPerSession is how many links an AMQP session gets: the service allows 255.
	linksPerSession = 200
)

// connect opens a connection and puts the token for source.
func connect(ctx context.Context, namespace *servicebus.Namespace, source Source, log *slog.Logger) (*connection, error) {
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	socket, err := namespace.Connect(ctx)
	if err != nil {
		end()
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &connection{namespace: namespace, source: source, log: log, end: end, turn: make(chan struct{}, 1), expires: map[string]time.Time{}}
	c.amqp, err = amqp.NewConn(ctx, gather(socket), &amqp.ConnOptions{
		HostName: namespace.Host(), SASLType: amqp.SASLTypeAnonymous(),
		Properties: map[string]any{"product": "feedbox", "platform": runtime.GOOS, "framework": runtime.Version(), "user-agent": "feedbox-subscriber"},
	})
	if err != nil {
		end()
		return nil, fmt.Errorf("connect: %w", err) // the socket is closed
	}
	if err := c.open(ctx, alive); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *connection) open(ctx, alive context.Context) error {
	session, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a session: %w", err)
	}
	if c.claims, err = openRequests(ctx, session, "$cbs"); err != nil {
		return err
	}
	c.tasks.Go(func() { c.claims.receive(alive) })
	if err := c.claim(ctx, string(c.source)); err != nil {
		return err
	}
	c.tasks.Go(func() { c.refresh(alive) })
	return nil
}

// claim puts a token for a path.
func (c *connection) claim(ctx context.Context, path string) error {
	token, err := c.namespace.Token(ctx, path)
	if err != nil {
		return err
	}
	_, err = c.claims.do(ctx, map[string]any{"operation": "put-token", "type": token.Kind, "name": token.Audience}, token.Text)
	if err != nil {
		return fmt.Errorf("put a token for %s: %w", path, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expires[path] = token.ExpiresAt
	return nil
}

const (
	// Tokens are put anew after half of the time they hold, within these bounds.
	refreshSoonest, refreshLatest = 30 * time.Second, 24 * time.Hour
)

// refresh puts new tokens before the old ones expire.
func (c *connection) refresh(ctx context.Context) {
	for {
		pause, paths := c.nextRefresh()
		if wait(ctx, ctx, pause); ctx.Err() != nil {
			return
		}
		for _, path := range paths {
			if err := c.claim(ctx, path); err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "a token was not renewed", "source", c.source, "error", err)
			}
		}
	}
}

// nextRefresh says when to put which tokens again.
func (c *connection) nextRefresh() (pause time.Duration, paths []string) {
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

// attach opens a receiver of source on an AMQP session that has room and does not attach.
// There are as many of them as attach at a time, and more only for very many links.
func (c *connection) attach(ctx context.Context, opts *amqp.ReceiverOptions) (*link, error) {
	session, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	r, err := session.NewReceiver(ctx, string(c.source), opts)
	c.attached(session, err == nil)
	if err != nil {
		return nil, err
	}
	return &link{Receiver: r, conn: c, session: session}, nil
}

// link is a receiver of a source.
type link struct {
	*amqp.Receiver
	conn    *connection
	session *amqpSession
}

// detach ends the link. What was received on it and not settled goes back.
func (l *link) detach(ctx context.Context) error {
	defer l.conn.leave(l.session)
	ctx, cancel := bounded(ctx)
	defer cancel()
	return l.Close(ctx)
}

// session returns an AMQP session to attach one more link to.
func (c *connection) session(ctx context.Context) (*amqpSession, error) {
	if s := c.room(); s != nil {
		return s, nil
	}
	begun, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &amqpSession{Session: begun, attaching: true}
	c.sessions = append(c.sessions, s)
	return s, nil
}

func (c *connection) room() *amqpSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		if !s.attaching && s.links < linksPerSession {
			s.attaching = true
			return s
		}
	}
	return nil
}

func (c *connection) attached(s *amqpSession, done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.attaching = false
	if done {
		s.links++
	}
}

func (c *connection) leave(s *amqpSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.links--
}

// giveUpAccepts detaches the receivers whose attach was given up unanswered: else the
// broker might still grant them a session. go-amqp does so before its next attach
// (session.go, freeAbandonedLinks); what becomes of that one does not matter.
func (c *connection) giveUpAccepts(ctx context.Context) {
	c.mu.Lock()
	sessions := c.sessions
	c.mu.Unlock()
	ctx, cancel := bounded(ctx)
	defer cancel()
	for _, s := range sessions {
		if sender, err := s.NewSender(ctx, string(c.source)+managementSuffix, nil); err == nil {
			_ = sender.Close(ctx) // it has served
		}
	}
}

const managementSuffix = "/$management"

// manage sends a request of an operation to the source's $management node. link is the
// name of the receiver that it is about.
func (c *connection) manage(ctx context.Context, link, operation string, body map[string]any) (map[string]any, error) {
	r, err := c.managementLinks(ctx)
	if err != nil {
		return nil, err
	}
	m, err := r.do(ctx, map[string]any{"operation": "com.microsoft:" + operation, "associated-link-name": link}, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	answer, _ := m.Value.(map[string]any) // none, if there is nothing to tell
	return answer, nil
}

func (c *connection) managementLinks(ctx context.Context) (*requests, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.management != nil {
		select {
		case <-c.management.ended:
		default:
			return c.management, nil
		}
	}
	path := string(c.source) + managementSuffix
	if err := c.claim(ctx, path); err != nil {
		return nil, err
	}
	session, err := c.amqp.NewSession(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("begin a session: %w", err)
	}
	r, err := openRequests(ctx, session, path)
	if err != nil {
		_ = session.Close(ctx)
		return nil, err
	}
	c.management = r
	alive := context.WithoutCancel(ctx) // until the connection ends
	c.tasks.Go(func() { r.receive(alive) })
	return r, nil
}

// close ends the connection and waits for its goroutines.
func (c *connection) close() {
	c.end()
	_ = c.amqp.Close() // what is lost with it comes again
	c.tasks.Wait()
}

// isBroken reports whether an error shows that a connection has to be replaced: it or its
// AMQP session has ended, or its token is refused.
func isBroken(err error) bool {
	if _, ended := errors.AsType[*amqp.ConnError](err); ended {
		return true
	}
	if _, ended := errors.AsType[*amqp.SessionError](err); ended {
		return true
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Status == http.StatusUnauthorized
	}
	return hasCondition(err, amqp.ErrCondUnauthorizedAccess)
}

// hasCondition reports whether the broker gave this reason.
func hasCondition(err error, condition amqp.ErrCond) bool {
	if ended, ok := errors.AsType[*amqp.LinkError](err); ok && ended.RemoteErr != nil {
		return ended.RemoteErr.Condition == condition
	}
	told, ok := errors.AsType[*amqp.Error](err)
	return ok && told.Condition == condition
}
