package contact

import (
	"time"

	"github.com/google/uuid"

	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// UpdateName gives the contact another name and records ContactNameUpdatedEvent
// under eventID. The same name changes and records nothing.
func (c *Contact) UpdateName(name Name, eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if name == c.name {
		return nil
	}
	c.name = name
	c.changed(now, func(at time.Time) event.Event {
		return ContactNameUpdatedEvent{Meta: c.Meta(eventID, at), Name: name}
	})
	return nil
}

// UpdateDescription gives the contact another description, or none, and records
// ContactDescriptionUpdatedEvent under eventID. The same one changes and records
// nothing.
func (c *Contact) UpdateDescription(description Description, eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if description == c.description {
		return nil
	}
	c.description = description
	c.changed(now, func(at time.Time) event.Event {
		return ContactDescriptionUpdatedEvent{Meta: c.Meta(eventID, at), Description: description}
	})
	return nil
}

// UpdateEmail gives the contact another e-mail address, or none, and records
// ContactEmailUpdatedEvent under eventID. The same one changes and records nothing.
func (c *Contact) UpdateEmail(email Email, eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if email == c.email {
		return nil
	}
	c.email = email
	c.changed(now, func(at time.Time) event.Event {
		return ContactEmailUpdatedEvent{Meta: c.Meta(eventID, at), Email: email}
	})
	return nil
}

// UpdateCompany replaces the company as a whole and records
// ContactCompanyUpdatedEvent under eventID. The same one changes and records
// nothing.
func (c *Contact) UpdateCompany(company Company, eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if company == c.company {
		return nil
	}
	c.company = company
	c.changed(now, func(at time.Time) event.Event {
		return ContactCompanyUpdatedEvent{Meta: c.Meta(eventID, at), Company: company}
	})
	return nil
}

// Delete marks the contact deleted and records ContactDeletedEvent under eventID.
// A contact that was never committed cannot be deleted: nothing happens.
func (c *Contact) Delete(eventID uuid.UUID, now time.Time) error {
	if c.Deleted() {
		return c.NotFound()
	}
	if c.IsNew() {
		return nil
	}
	c.MarkDeleted()
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

// changed notes the time of a change and records its event, in the place of one of
// the same action: events of a contact carry the state of a part, so the last says
// all. A new contact records nothing here: ContactCreatedEvent will say it all.
func (c *Contact) changed(now time.Time, happened func(at time.Time) event.Event) {
	if c.IsNew() {
		return
	}
	c.modifiedAt = wallClock(now)
	c.Events().RecordLast(happened(c.modifiedAt))
}
