package contacts_test

import (
	"context"
	"testing"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/domain/contact"
	"feedbox/domain/event"
)

type outbox struct{ actions []string }

func (o *outbox) Add(_ context.Context, e event.Event) error {
	o.actions = append(o.actions, e.Action())
	return nil
}

func TestEveryContactEventReachesOutboxOnce(t *testing.T) {
	t.Parallel()
	m := mediator.New()
	contacts.SubscribeEvents(m)
	for _, e := range []event.Event{
		contact.ContactCreatedEvent{},
		contact.ContactNameUpdatedEvent{},
		contact.ContactDescriptionUpdatedEvent{},
		contact.ContactEmailUpdatedEvent{},
		contact.ContactCompanyUpdatedEvent{},
		contact.ContactDeletedEvent{},
	} {
		var box outbox
		if err := m.Publish(t.Context(), &box, e); err != nil {
			t.Errorf("%T: %v", e, err)
		}
		if len(box.actions) != 1 || box.actions[0] != e.Action() {
			t.Errorf("%T: the outbox holds %v", e, box.actions)
		}
	}
}
