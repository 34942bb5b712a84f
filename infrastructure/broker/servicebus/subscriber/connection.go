package subscriber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/internal/shared"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
)

// connection is a connection with a token for a source.
type connection struct {
	*wire.Conn
	source Source
}

// connector keeps a processor connected. Safe for concurrent use.
type connector struct {
	*shared.Resource[connection]
	source Source
}

func newConnector(namespace *wire.Namespace, source Source, log *slog.Logger) *connector {
	open := func(ctx context.Context) (*connection, error) {
		c, err := wire.Open(ctx, namespace, log)
		if err != nil {
			return nil, err
		}
		if err := c.Claim(ctx, string(source)); err != nil {
			c.Close()
			return nil, err
		}
		return &connection{c, source}, nil
	}
	return &connector{shared.New(open, func(_ context.Context, c *connection) error { c.Close(); return nil }), source}
}

// attach opens a receiver of the source.
func (c *connection) attach(ctx context.Context, opts *amqp.ReceiverOptions) (*link, error) {
	l := &link{conn: c}
	var err error
	l.leave, err = c.Attach(ctx, func(s *amqp.Session) (err error) {
		l.Receiver, err = s.NewReceiver(ctx, string(c.source), opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// link is a receiver of a source.
type link struct {
	*amqp.Receiver
	conn  *connection
	leave func()
}

// detach ends the link. What was received on it and not settled goes back.
func (l *link) detach(ctx context.Context) error {
	defer l.leave()
	ctx, cancel := bounded(ctx)
	defer cancel()
	return l.Close(ctx)
}

// giveUpAccepts detaches the receivers whose attach was given up unanswered: else the
// broker might still grant them a session.
func (c *connection) giveUpAccepts(ctx context.Context) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c.FreeAbandoned(ctx, c.management())
}

func (c *connection) management() string { return string(c.source) + wire.ManagementSuffix }

// manage sends a request of an operation to the source's $management node. link is the
// name of the receiver that it is about.
func (c *connection) manage(ctx context.Context, link, operation string, body map[string]any) (map[string]any, error) {
	m, err := c.Request(ctx, c.management(), map[string]any{"operation": "com.microsoft:" + operation, "associated-link-name": link}, body)
	if refused, ok := errors.AsType[*wire.RefusedError](err); ok {
		err = (*RefusedError)(refused)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	answer, _ := m.Value.(map[string]any) // none, if there is nothing to tell
	return answer, nil
}

// isBroken reports whether an error shows that the connection has to be replaced: it has
// ended, or its token is refused.
func isBroken(err error) bool {
	refused, ok := errors.AsType[*wire.RefusedError](err)
	return wire.Broken(err) || wire.HasCondition(err, amqp.ErrCondUnauthorizedAccess) || ok && refused.Status == http.StatusUnauthorized
}

// RefusedError is a request about a lock or a session's state that the broker refused.
type RefusedError struct {
	Status      int // as in HTTP
	Description string
}

// Error implements error.
func (e *RefusedError) Error() string { return (*wire.RefusedError)(e).Error() }

// Is makes a refusal for a lock that is gone ErrLockLost.
func (e *RefusedError) Is(target error) bool {
	return target == consumer.ErrLockLost && e.Status == http.StatusGone
}
