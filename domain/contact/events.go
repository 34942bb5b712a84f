package contact

import "feedbox/domain/event"

// The actions of a contact's events. An action is the name of the event's type and the
// subject of its message.
const (
	ActionCreated            = "ContactCreatedEvent"
	ActionNameUpdated        = "ContactNameUpdatedEvent"
	ActionDescriptionUpdated = "ContactDescriptionUpdatedEvent"
	ActionEmailUpdated       = "ContactEmailUpdatedEvent"
	ActionCompanyUpdated     = "ContactCompanyUpdatedEvent"
	ActionDeleted            = "ContactDeletedEvent"
)

// The events of a contact.
//
//nolint:revive // the name of the type is the action, which consumers use without the package
type (
	// ContactCreatedEvent is the creation of a contact. Pending sets Contact to the
	// contact as it is committed.
	ContactCreatedEvent struct {
		event.Meta
		Contact State
	}

	// ContactNameUpdatedEvent is a change of the name.
	ContactNameUpdatedEvent struct {
		event.Meta
		Name Name
	}

	// ContactDescriptionUpdatedEvent is a change or the removal of the description.
	ContactDescriptionUpdatedEvent struct {
		event.Meta
		Description Description
	}

	// ContactEmailUpdatedEvent is a change or the removal of the e-mail address.
	ContactEmailUpdatedEvent struct {
		event.Meta
		Email Email
	}

	// ContactCompanyUpdatedEvent is a change of the company or of its address.
	ContactCompanyUpdatedEvent struct {
		event.Meta
		Company Company
	}

	// ContactDeletedEvent is the deletion of a contact. It is the contact's last event.
	ContactDeletedEvent struct {
		event.Meta
	}
)

// Action returns ActionCreated.
func (ContactCreatedEvent) Action() string { return ActionCreated }

// Action returns ActionNameUpdated.
func (ContactNameUpdatedEvent) Action() string { return ActionNameUpdated }

// Action returns ActionDescriptionUpdated.
func (ContactDescriptionUpdatedEvent) Action() string { return ActionDescriptionUpdated }

// Action returns ActionEmailUpdated.
func (ContactEmailUpdatedEvent) Action() string { return ActionEmailUpdated }

// Action returns ActionCompanyUpdated.
func (ContactCompanyUpdatedEvent) Action() string { return ActionCompanyUpdated }

// Action returns ActionDeleted.
func (ContactDeletedEvent) Action() string { return ActionDeleted }

// Stamped returns the event with its version and sequence.
func (e ContactCreatedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Stamped returns the event with its version and sequence.
func (e ContactNameUpdatedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Stamped returns the event with its version and sequence.
func (e ContactDescriptionUpdatedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Stamped returns the event with its version and sequence.
func (e ContactEmailUpdatedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Stamped returns the event with its version and sequence.
func (e ContactCompanyUpdatedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}

// Stamped returns the event with its version and sequence.
func (e ContactDeletedEvent) Stamped(version, sequence int64) event.Event {
	e.Meta = e.At(version, sequence)
	return e
}
