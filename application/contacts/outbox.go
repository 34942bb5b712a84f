package contacts

import (
	"context"

	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

// SubscribeEvents makes m put every event of a contact into the outbox of its commit, so
// that it is stored in the same transaction as the contact it happened to. The relay takes
// it from there.
//
// There is one subscription per event type. A new event type without one fails
// its commits loudly instead of being lost.
func SubscribeEvents(m *mediator.Mediator) {
	mediator.Subscribe(m, store[contact.ContactCreatedEvent])
	mediator.Subscribe(m, store[contact.ContactNameUpdatedEvent])
	mediator.Subscribe(m, store[contact.ContactDescriptionUpdatedEvent])
	mediator.Subscribe(m, store[contact.ContactEmailUpdatedEvent])
	mediator.Subscribe(m, store[contact.ContactCompanyUpdatedEvent])
	mediator.Subscribe(m, store[contact.ContactDeletedEvent])
}

func store[E event.Event](ctx context.Context, outbox mediator.Outbox, e E) error {
	return outbox.Add(ctx, e)
}
