package contact

import (
	"time"

	"github.com/google/uuid"

	"feedbox/domain/event"
	"feedbox/domain/fault"
)

// Contact is the aggregate root. It is not safe for concurrent use: each unit of
// work has its own.
type Contact struct {
	id          uuid.UUID
	name        Name
	description Description
	email       Email
	company     Company
	createdAt   time.Time
	modifiedAt  time.Time
	deletedAt   time.Time
	deleted     bool
	requestHash string

	stored   bool  // was committed
	version  int64 // of the last commit; 0: none, also of no other contact of this id
	sequence int64 // of the last committed event
	events   event.Recorder
}

// Details are the parts a contact is made of. Description and Email may be their
// zero values: none.
type Details struct {
	Name        Name
	Description Description
	Email       Email
	Company     Company
	// RequestHash tells the request that created the contact from any other one that
	// comes under the same idempotency key. It is empty for a request without a key.
	RequestHash string
}

// New returns a contact that is not stored yet and records ContactCreatedEvent
// under eventID. It refuses a nil id and details that skipped their constructors.
func New(id uuid.UUID, d Details, eventID uuid.UUID, now time.Time) (*Contact, error) {
	if id == uuid.Nil || eventID == uuid.Nil {
		return nil, fault.New(fault.Internal, "", "a contact and its event need an id")
	}
	if d.Name == (Name{}) || d.Company == (Company{}) {
		return nil, fault.New(fault.Internal, "", "a contact needs a name and a company")
	}
	now = wallClock(now)
	c := &Contact{
		id: id, name: d.Name, description: d.Description, email: d.Email, company: d.Company,
		createdAt: now, requestHash: d.RequestHash,
	}
	c.events.Record(ContactCreatedEvent{Meta: c.meta(eventID, now)})
	return c, nil
}

// ID returns the contact's id, which is also its partition key.
func (c *Contact) ID() uuid.UUID { return c.id }

// Version returns the version of the last commit; before the first 0, or that of the
// contact it continues.
func (c *Contact) Version() int64 { return c.version }

// IsNew reports whether the contact was never committed.
func (c *Contact) IsNew() bool { return !c.stored }

// Deleted reports whether the contact is deleted. A deleted contact stays so.
func (c *Contact) Deleted() bool { return c.deleted }

// String names the contact without its personal data: formatted values end up in logs.
func (c *Contact) String() string { return "contact " + c.id.String() }

// meta returns the metadata of an event that happens now.
func (c *Contact) meta(eventID uuid.UUID, now time.Time) event.Meta {
	return event.Meta{ID: eventID, AggregateID: c.id, CreatedAt: now}
}

// wallClock drops the monotonic reading, which no store keeps.
func wallClock(t time.Time) time.Time { return t.Round(0) }
