package mediator

import (
	"context"
	"fmt"

	"feedbox/domain/event"
)

// Outbox takes the events that a commit under way shall store beside the
// aggregate. It belongs to one unit of work.
type Outbox interface {
	// Add puts e into the commit. An error fails the commit.
	Add(ctx context.Context, e event.Event) error
}

// EventHandler handles domain events of one type, within the commit that stores
// them. Its error fails that commit, so that nothing is stored.
type EventHandler[E event.Event] func(ctx context.Context, outbox Outbox, e E) error

type subscribedFunc func(ctx context.Context, outbox Outbox, e event.Event) error

// Subscribe makes handle see every event of type E. An event type may have
// several handlers. E must be a value type: its zero value names the action.
func Subscribe[E event.Event](m *Mediator, handle EventHandler[E]) {
	var zero E
	action := zero.Action()
	m.events[action] = append(m.events[action], func(ctx context.Context, outbox Outbox, e event.Event) error {
		typed, ok := e.(E)
		if !ok {
			return fmt.Errorf("publish %s: it is a %T, its handler wants a %T", action, e, zero)
		}
		return handle(ctx, outbox, typed)
	})
}

// Publish gives e to all its handlers and returns the first error. An event
// without a handler is an error.
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
