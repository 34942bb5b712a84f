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
	"feedbox/infrastructure/consumer/handling"
)

// connection is a connection that has a token for a source.
type connection struct {
	*wire.Conn
	source Source
}

// connector opens the connection of a processor when it is needed. It is safe for concurrent use.
type connector struct {
	*shared.Resource[connection]
	source Source
}

func newConnector(namespace *wire.Namespace, source Source, log *slog.Logger) *connector {
	open := func(ctx context.Context) (*connection, error) {
		ctx, cancel := context.WithTimeout(ctx, wire.ConnectTimeout) // also for the credential
		defer cancel()
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

func (c *connection) attach(ctx context.Context, opts *amqp.ReceiverOptions) (*link, error) {
	l := &link{conn: c}
	var err error
	l.release, err = c.Attach(ctx, func(s *amqp.Session) (err error) {
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
	conn    *connection
	release func() // its place in the AMQP session
}

// detach detaches the link, which returns its unsettled messages to the session.
func (l *link) detach(ctx context.Context) error {
	defer l.release()
	ctx, cancel := bounded(ctx)
	defer cancel()
	return l.Close(ctx)
}

// cancelAccepts detaches receivers whose attach was canceled, because the broker could still grant them a
// session.
func (c *connection) cancelAccepts(ctx context.Context) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c.FreeAbandoned(ctx, c.management())
}

func (c *connection) management() string { return string(c.source) + wire.ManagementSuffix }

// manage sends a request to the $management node of the source. link is the name of the receiver that
// the operation concerns.
func (c *connection) manage(ctx context.Context, link, operation string, body map[string]any) (map[string]any, error) {
	m, err := c.Request(ctx, c.management(), map[string]any{"operation": "com.microsoft:" + operation, "associated-link-name": link}, body)
	if refused, ok := errors.AsType[*wire.RefusedError](err); ok {
		err = (*RefusedError)(refused)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	response, _ := m.Value.(map[string]any) // nil if the operation returns no value
	return response, nil
}

// isBroken reports whether an error means that the connection must be replaced, because it has ended or its
// token was refused.
func isBroken(err error) bool {
	refused, ok := errors.AsType[*wire.RefusedError](err)
	return wire.Broken(err) || wire.HasCondition(err, amqp.ErrCondUnauthorizedAccess) || ok && refused.Status == http.StatusUnauthorized
}

// isSilent reports whether the broker did not reply in time. It replies to an attach, also if no session has
// messages.
func isSilent(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// advise returns what to do about a failure to receive.
func advise(err error) handling.Advice {
	refused, _ := errors.AsType[*wire.RefusedError](err)
	ended, _ := errors.AsType[*amqp.Error](err)
	is := func(status int, condition amqp.ErrCond) bool {
		return refused != nil && refused.Status == status || ended != nil && ended.Condition == condition
	}
	switch {
	case is(http.StatusNotFound, amqp.ErrCondNotFound):
		return handling.Advice{Reason: "entity_not_found", Next: "correct the names of topic, subscription or queue, or create the entity"}
	case is(http.StatusUnauthorized, amqp.ErrCondUnauthorizedAccess):
		return handling.Advice{Reason: "unauthorized", Next: "give the identity the role Azure Service Bus Data Receiver on the entity, or correct the key"}
	case is(0, "com.microsoft:entity-disabled"):
		return handling.Advice{Reason: "entity_disabled", Next: "enable the entity"}
	case is(0, amqp.ErrCondNotAllowed):
		return handling.Advice{Reason: "not_allowed", Next: "use NewSessionProcessor if the entity requires sessions, and NewProcessor if it does not"}
	case ended != nil:
		return handling.Advice{Reason: string(ended.Condition), Next: "none: the consumer attaches again"}
	}
	return handling.Advice{}
}

// RefusedError is the error of a refused request for a lock or a session state.
type RefusedError struct {
	Status      int // HTTP status
	Description string
}

// Error implements error.
func (e *RefusedError) Error() string { return (*wire.RefusedError)(e).Error() }

// Is reports that a refusal with status 410 is ErrLockLost.
func (e *RefusedError) Is(target error) bool {
	return target == consumer.ErrLockLost && e.Status == http.StatusGone
}
