package contact

import "feedbox/domain/event"

// The actions of a contact's events. An action is the name of the event's type
// and the subject of its message.
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
//nolint:revive // the type's name is the action, which consumers know; it has to stand alone
type (
	// ContactCreatedEvent says that a contact came to be. Contact is the contact as
	// committed; it is filled in by Pending.
	ContactCreatedEvent struct {
		event.Meta
		Contact State
	}

	// ContactNameUpdatedEvent says that a contact has a new name.
	ContactNameUpdatedEvent struct {
		event.Meta
		Name Name
	}

	// ContactDescriptionUpdatedEvent says that a contact has a new description, or
	// none any more.
	ContactDescriptionUpdatedEvent struct {
		event.Meta
		Description Description
	}

	// ContactEmailUpdatedEvent says that a contact has a new e-mail address, or none
	// any more.
	ContactEmailUpdatedEvent struct {
		event.Meta
		Email Email
	}

	// ContactCompanyUpdatedEvent says that a contact works elsewhere, or that the
	// company's address changed.
	ContactCompanyUpdatedEvent struct {
		event.Meta
		Company Company
	}

	// ContactDeletedEvent says that a contact was deleted. It is a contact's last event.
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
