package contacts

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// CreateContact creates a contact and records ContactCreatedEvent.
//
// See command.Service.Create for repeats under an idempotency key.
//
// Faults: Invalid (lists all fields), Conflict when ContactID is taken, Gone,
// PreconditionFailed, and those of command.UnitOfWork.Commit.
type CreateContact struct {
	// ContactID, IfMatch and SessionToken are those of command.Creation.
	ContactID    uuid.UUID
	FirstName    string
	LastName     string
	Description  *string // nil: none
	Email        *string // nil: none
	Company      contact.CompanyFields
	IfMatch      []string
	SessionToken string
	command.Sender
}

// ContactCreated is the answer of CreateContact, see command.Created.
type ContactCreated struct {
	Contact      Contact
	ETag         string
	SessionToken string
	Replayed     bool
}

// Returns declares the answer.
func (CreateContact) Returns(ContactCreated) {}

func (c *commands) createContact(ctx context.Context, in CreateContact) (ContactCreated, error) {
	details, err := in.details()
	if err != nil {
		return ContactCreated{}, err
	}
	created, err := c.Create(ctx, command.Creation[*contact.Contact]{
		ID: in.ContactID, IfMatch: in.IfMatch, SessionToken: in.SessionToken, Sender: in.Sender,
		Make: func(id uuid.UUID, requestHash string) (*contact.Contact, error) {
			details.RequestHash = requestHash
			return contact.New(id, details, c.IDs(), c.Now())
		},
		Unchanged: func(made *contact.Contact) bool { return made.State().ModifiedAt.IsZero() },
		Parts:     []any{"CreateContact", in.FirstName, in.LastName, in.Description, in.Email, in.Company},
	})
	if err != nil {
		return ContactCreated{}, err
	}
	return ContactCreated{
		Contact: NewContact(created.Aggregate.State()), ETag: created.ETag,
		SessionToken: created.SessionToken, Replayed: created.Replayed,
	}, nil
}

// details builds the parts of the contact. Its error lists every broken rule.
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
