package command

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// CreateContact makes a new contact and records ContactCreatedEvent.
//
// Faults: Invalid (lists all fields), Conflict when ContactID is taken, and those
// of UnitOfWork.Commit.
type CreateContact struct {
	// ContactID is the new contact's id; uuid.Nil lets the service make one.
	ContactID   uuid.UUID
	FirstName   string
	LastName    string
	Description *string // nil: none
	Email       *string // nil: none
	Company     contact.CompanyFields
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// ContactCreated answers CreateContact.
type ContactCreated struct {
	Contact      query.Contact
	ETag         string
	SessionToken string
}

// Returns declares the answer.
func (CreateContact) Returns(ContactCreated) {}

func (p Ports) createContact(ctx context.Context, in CreateContact) (ContactCreated, error) {
	details, err := in.details()
	if err != nil {
		return ContactCreated{}, err
	}
	id := in.ContactID
	if id == uuid.Nil {
		id = p.IDs()
	}
	work, err := p.Work.Begin(in.SessionToken)
	if err != nil {
		return ContactCreated{}, err
	}
	c, err := contact.New(id, details, p.IDs(), p.Now())
	if err != nil {
		return ContactCreated{}, err
	}
	if err := work.Contacts().Add(c); err != nil {
		return ContactCreated{}, err
	}
	receipt, err := work.Commit(ctx)
	if err != nil {
		return ContactCreated{}, err
	}
	return ContactCreated{
		Contact:      query.NewContact(c.State()),
		ETag:         receipt.ETag,
		SessionToken: receipt.SessionToken,
	}, nil
}

// details builds the parts of the contact and reports every fault at once.
func (in CreateContact) details() (contact.Details, error) {
	name, nameErr := contact.NewName(in.FirstName, in.LastName)
	description, descriptionErr := contact.NewDescription(in.Description)
	email, emailErr := contact.NewEmail(in.Email)
	company, companyErr := contact.NewCompany(in.Company)
	if err := fault.Merge(nameErr, emailErr, descriptionErr, companyErr); err != nil {
		return contact.Details{}, err
	}
	return contact.Details{Name: name, Description: description, Email: email, Company: company}, nil
}
