package subscriber

import (
	"context"
	"log/slog"

	"feedbox/infrastructure/servicebus"
)

// connector keeps a processor connected. Safe for concurrent use.
type connector struct {
	namespace *servicebus.Namespace
	source    Source
	log       *slog.Logger
	turn      chan struct{} // capacity 1: held to look at and change current
	current   *connection
}

func newConnector(namespace *servicebus.Namespace, source Source, log *slog.Logger) *connector {
	return &connector{namespace: namespace, source: source, log: log, turn: make(chan struct{}, 1)}
}

// get returns the connection, which it makes if there is none.
func (c *connector) get(ctx context.Context) (*connection, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.current != nil {
		return c.current, nil
	}
	var err error
	c.current, err = connect(ctx, c.namespace, c.source, c.log)
	return c.current, err
}

// drop closes a connection that is of no more use, unless that was done.
func (c *connector) drop(old *connection) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.current == old && old != nil {
		c.current = nil
		old.close()
	}
}

// close closes the connection, if there is one.
func (c *connector) close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.current != nil {
		c.current.close()
		c.current = nil
	}
}
