package contact

import (
	"time"

	"github.com/google/uuid"

	"feedbox/domain/aggregate"
	"feedbox/domain/fault"
)

// Contact is the aggregate root. It is not safe for concurrent use.
type Contact struct {
	aggregate.Root
	name        Name
	description Description
	email       Email
	company     Company
	createdAt   time.Time
	modifiedAt  time.Time
	deletedAt   time.Time
}

// Details are the parts of a new contact. The zero values of Description and Email mean none.
type Details struct {
	Name        Name
	Description Description
	Email       Email
	Company     Company
	// RequestHash is that of aggregate.Snapshot.
	RequestHash string
}

// New returns a contact that is not stored yet and records ContactCreatedEvent under eventID.
// A nil id, and a zero Name or Company, are faults.
func New(id uuid.UUID, d Details, eventID uuid.UUID, now time.Time) (*Contact, error) {
	if eventID == uuid.Nil {
		return nil, fault.New(fault.Internal, "", "an event needs an id")
	}
	if d.Name == (Name{}) || d.Company == (Company{}) {
		return nil, fault.New(fault.Internal, "", "a contact needs a name and a company")
	}
	root, err := aggregate.New(id, d.RequestHash)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "", "a contact needs an id", err)
	}
	now = wallClock(now)
	c := &Contact{
		Root: root,
		name: d.Name, description: d.Description, email: d.Email, company: d.Company,
		createdAt: now,
	}
	c.Events().Record(ContactCreatedEvent{Meta: c.Meta(eventID, now)})
	return c, nil
}

// String omits personal data, because formatted values end up in logs.
func (c *Contact) String() string { return "contact " + c.ID().String() }

// wallClock drops the monotonic reading, because stores do not keep it.
func wallClock(t time.Time) time.Time { return t.Round(0) }
