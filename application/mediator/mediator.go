package mediator

import (
	"context"
	"fmt"
)

// Mediator holds the handlers. Create it with New.
type Mediator struct {
	behaviors []Behavior
	requests  map[any]any                 // key[In]{} -> *request[In, Out]
	events    map[string][]subscribedFunc // by action
}

// Behavior runs around a request. It calls next, once, and returns what next
// returned or an error of its own. Name is the request's type, such as
// "command.UpdateName".
type Behavior func(ctx context.Context, name string, next func(context.Context) error) error

// New returns an empty mediator. The first behaviour is the outermost.
func New(behaviors ...Behavior) *Mediator {
	return &Mediator{
		behaviors: behaviors,
		requests:  make(map[any]any),
		events:    make(map[string][]subscribedFunc),
	}
}

// Request is a command or a query whose answer has the type Out. The method only
// declares that type; it is never called.
type Request[Out any] interface {
	Returns(Out)
}

// Handler answers requests of one type.
type Handler[In Request[Out], Out any] func(ctx context.Context, in In) (Out, error)

// key finds a handler by the type of its request, without reflection.
type key[In any] struct{}

type request[In Request[Out], Out any] struct {
	name   string
	handle Handler[In, Out]
}

// Register makes handle answer requests of type In. A second handler for the
// same type is an error.
func Register[In Request[Out], Out any](m *Mediator, handle Handler[In, Out]) error {
	var zero In
	name := fmt.Sprintf("%T", zero)
	if _, taken := m.requests[key[In]{}]; taken {
		return fmt.Errorf("register a handler for %s: there is one already", name)
	}
	m.requests[key[In]{}] = &request[In, Out]{name: name, handle: handle}
	return nil
}

// Send gives in to its handler, through the behaviours, and returns the answer.
// It fails when nobody registered for the type.
func Send[In Request[Out], Out any](ctx context.Context, m *Mediator, in In) (Out, error) {
	var out Out
	found, ok := m.requests[key[In]{}].(*request[In, Out])
	if !ok {
		return out, fmt.Errorf("send %T: no handler is registered", in)
	}
	if len(m.behaviors) == 0 {
		return found.handle(ctx, in)
	}
	call := func(ctx context.Context) (err error) {
		out, err = found.handle(ctx, in)
		return err
	}
	for i := len(m.behaviors) - 1; i >= 0; i-- {
		behavior, next := m.behaviors[i], call
		call = func(ctx context.Context) error { return behavior(ctx, found.name, next) }
	}
	err := call(ctx)
	return out, err
}
