// Package mediator dispatches requests and domain events to their handlers.
//
// A request (command or query) has exactly one handler, found by the request's type. Each
// request declares the type of its answer with a Returns method, so that Send is checked at
// compile time. A domain event goes to every handler subscribed to its type, in the order of
// subscription, within the commit that stores it. An event without a handler is an error,
// because it would be lost.
//
// Register and Subscribe must not be called concurrently with Send or Publish: fill the
// Mediator first. Send and Publish are safe for concurrent use. The package starts no
// goroutines.
package mediator

import (
	"context"
	"fmt"
)

// Mediator holds the handlers. Create it with New.
type Mediator struct {
	requests map[any]any                 // key[In]{} -> Handler[In, Out]
	events   map[string][]subscribedFunc // by action
}

// New returns an empty mediator.
func New() *Mediator {
	return &Mediator{requests: make(map[any]any), events: make(map[string][]subscribedFunc)}
}

// Request is a command or a query whose answer has the type Out. The method only declares
// that type and is never called.
type Request[Out any] interface {
	Returns(Out)
}

// Handler answers requests of one type.
type Handler[In Request[Out], Out any] func(ctx context.Context, in In) (Out, error)

// key finds a handler by the type of its request, without reflection.
type key[In any] struct{}

// Register makes handle answer requests of type In. A second handler for the
// same type is an error.
func Register[In Request[Out], Out any](m *Mediator, handle Handler[In, Out]) error {
	if _, taken := m.requests[key[In]{}]; taken {
		var zero In
		return fmt.Errorf("register a handler for %T: there is one already", zero)
	}
	m.requests[key[In]{}] = handle
	return nil
}

// Send calls the handler of in and returns its answer. A request without a handler is an
// error.
func Send[In Request[Out], Out any](ctx context.Context, m *Mediator, in In) (Out, error) {
	handle, ok := m.requests[key[In]{}].(Handler[In, Out])
	if !ok {
		var none Out
		return none, fmt.Errorf("send %T: no handler is registered", in)
	}
	return handle(ctx, in)
}
