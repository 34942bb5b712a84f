package contact

import (
	"time"

	"github.com/google/uuid"

	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// UpdateName changes the name and records ContactNameUpdatedEvent under eventID. The same
// name changes and records nothing.
func (c *Contact) UpdateName(name Name, eventID uuid.UUID, now time.Time) error {
	return update(c, &c.name, name, now, func(at time.Time) event.Event {
		return ContactNameUpdatedEvent{Meta: c.Meta(eventID, at), Name: name}
	})
}

// UpdateDescription changes or removes the description and records
// ContactDescriptionUpdatedEvent under eventID. The same description changes and records
// nothing.
func (c *Contact) UpdateDescription(description Description, eventID uuid.UUID, now time.Time) error {
	return update(c, &c.description, description, now, func(at time.Time) event.Event {
		return ContactDescriptionUpdatedEvent{Meta: c.Meta(eventID, at), Description: description}
	})
}

// UpdateEmail changes or removes the e-mail address and records ContactEmailUpdatedEvent
// under eventID. The same address changes and records nothing.
func (c *Contact) UpdateEmail(email Email, eventID uuid.UUID, now time.Time) error {
	return update(c, &c.email, email, now, func(at time.Time) event.Event {
		return ContactEmailUpdatedEvent{Meta: c.Meta(eventID, at), Email: email}
	})
}

// UpdateCompany replaces the company as a whole and records
// ContactCompanyUpdatedEvent under eventID. The same company changes and records nothing.
func (c *Contact) UpdateCompany(company Company, eventID uuid.UUID, now time.Time) error {
	return update(c, &c.company, company, now, func(at time.Time) event.Event {
		return ContactCompanyUpdatedEvent{Meta: c.Meta(eventID, at), Company: company}
	})
}

// Delete marks the contact deleted, removes its personal data and records ContactDeletedEvent
// under eventID. It does nothing on a contact that was never committed.
func (c *Contact) Delete(eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if c.IsNew() {
		return nil
	}
	c.MarkDeleted()
	c.name, c.description, c.email, c.company = Name{}, Description{}, Email{}, Company{}
	c.deletedAt = wallClock(now)
	c.changed(now, func(at time.Time) event.Event {
		return ContactDeletedEvent{Meta: c.Meta(eventID, at)}
	})
	return nil
}

// NotFound returns the fault of a contact that does not exist or is deleted.
func (c *Contact) NotFound() error { return NotFound(c.ID()) }

// NotFound returns the fault of a contact that does not exist or is deleted.
func NotFound(id uuid.UUID) error {
	return fault.Missing("contact", id.String())
}

// update sets a part of the contact and records its event. The same value changes and records
// nothing.
func update[V comparable](c *Contact, part *V, value V, now time.Time, happened func(at time.Time) event.Event) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if value == *part {
		return nil
	}
	*part = value
	c.changed(now, happened)
	return nil
}

// changed sets the time of a change and records its event. The event replaces an earlier one
// of the same action, because events of a contact carry the whole state of a part. A new
// contact records nothing here, because ContactCreatedEvent carries its whole state.
func (c *Contact) changed(now time.Time, happened func(at time.Time) event.Event) {
	if c.IsNew() {
		return
	}
	c.modifiedAt = wallClock(now)
	c.Events().RecordLast(happened(c.modifiedAt))
}
