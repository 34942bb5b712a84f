package mediator

import (
	"context"
	"fmt"

	"feedbox/domain/event"
)

// Outbox collects the events that the current commit stores with the aggregate. It belongs
// to one unit of work.
type Outbox interface {
	// Add adds e to the commit. An error fails the commit.
	Add(ctx context.Context, e event.Event) error
}

// EventHandler handles domain events of one type within the commit that stores them. Its
// error fails that commit, so that nothing is stored.
type EventHandler[E event.Event] func(ctx context.Context, outbox Outbox, e E) error

type subscribedFunc func(ctx context.Context, outbox Outbox, e event.Event) error

// Subscribe adds a handler for events of type E. An event type may have several handlers. E
// must be a value type, because its zero value names the action.
func Subscribe[E event.Event](m *Mediator, handle EventHandler[E]) {
	var zero E
	action := zero.Action()
	m.events[action] = append(m.events[action], func(ctx context.Context, outbox Outbox, e event.Event) error {
		typed, ok := e.(E)
		if !ok {
			return fmt.Errorf("publish %s: the event is a %T, its handler takes a %T", action, e, zero)
		}
		return handle(ctx, outbox, typed)
	})
}

// Publish calls the handlers of e and returns the first error. An event without a handler is
// an error.
func (m *Mediator) Publish(ctx context.Context, outbox Outbox, e event.Event) error {
	handlers := m.events[e.Action()]
	if len(handlers) == 0 {
		return fmt.Errorf("publish %s: no handler is subscribed, the event would be lost", e.Action())
	}
	for _, handle := range handlers {
		if err := handle(ctx, outbox, e); err != nil {
			return fmt.Errorf("publish %s: %w", e.Action(), err)
		}
	}
	return nil
}
