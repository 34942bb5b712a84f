package contacts

import (
	"context"

	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

// SubscribeEvents makes m add every event of a contact to the outbox of its commit, so that it
// is stored in the same transaction as the contact. The relay publishes it from there.
//
// There is one subscription per event type. Commits with an event type that has none fail,
// because otherwise the event would be lost.
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
