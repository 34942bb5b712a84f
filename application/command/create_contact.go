package command

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// CodeContactDeleted is the code of Gone: the contact that the repeated request
// had created is deleted.
const CodeContactDeleted = "contact_deleted"

// CreateContact makes a new contact and records ContactCreatedEvent.
//
// Under an idempotency key the contact's id is derived from principal and key, so
// a repeat finds what the first request has made, for as long as the contact
// exists: it is answered with the contact as it is now, Replayed. If the contact
// was deleted meanwhile the repeat is Gone; if it is another request under the
// same key it is Invalid (CodeKeyReused). Once the deleted contact is erased, the
// request makes a new one, which continues its version and sequence.
//
// Faults: Invalid (lists all fields), Conflict when ContactID is taken, Gone,
// PreconditionFailed, and those of UnitOfWork.Commit.
type CreateContact struct {
	// ContactID is the new contact's id; uuid.Nil lets the service make one. It goes
	// without an idempotency key only, and must never have been used.
	ContactID   uuid.UUID
	FirstName   string
	LastName    string
	Description *string // nil: none
	Email       *string // nil: none
	Company     contact.CompanyFields
	// IfMatch demands a state of the contact. It has none yet, so any demand fails.
	IfMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
	Sender
}

// ContactCreated answers CreateContact.
type ContactCreated struct {
	Contact query.Contact
	// ETag is empty where the contact was changed since the request created it, see
	// Updated.
	ETag         string
	SessionToken string
	// Replayed says that an earlier request under the same key has created the
	// contact.
	Replayed bool
}

// Returns declares the answer.
func (CreateContact) Returns(ContactCreated) {}

func (p Ports) createContact(ctx context.Context, in CreateContact) (ContactCreated, error) {
	details, err := in.details()
	if err != nil {
		return ContactCreated{}, err
	}
	id, err := p.newContactID(in)
	if err != nil {
		return ContactCreated{}, err
	}
	work, err := p.Work.Begin(in.SessionToken)
	if err != nil {
		return ContactCreated{}, err
	}
	if len(in.IfMatch) > 0 {
		return ContactCreated{}, fault.New(fault.PreconditionFailed, "", "there is no contact yet whose state could match")
	}
	c, err := contact.New(id, details, p.IDs(), p.Now())
	if err != nil {
		return ContactCreated{}, err
	}
	if err := work.Contacts().Add(ctx, c); err != nil {
		return ContactCreated{}, err
	}
	receipt, err := p.commit(ctx, work, c, in.Sender)
	if fault.Is(err, fault.Conflict) && in.hasKey() {
		return p.createdBefore(ctx, id, details.RequestHash, work.SessionToken())
	}
	if err != nil {
		return ContactCreated{}, err
	}
	return ContactCreated{
		Contact:      query.NewContact(c.State()),
		ETag:         receipt.ETag,
		SessionToken: receipt.SessionToken,
	}, nil
}

func (p Ports) newContactID(in CreateContact) (uuid.UUID, error) {
	switch {
	case in.hasKey() && in.ContactID != uuid.Nil:
		return uuid.Nil, errors.New("create a contact: an id and an idempotency key exclude each other")
	case in.hasKey():
		return in.contactID(), nil
	case in.ContactID != uuid.Nil:
		return in.ContactID, nil
	default:
		return p.IDs(), nil
	}
}

// createdBefore answers a repeat with the contact that the first request made.
func (p Ports) createdBefore(ctx context.Context, id uuid.UUID, hash, session string) (ContactCreated, error) {
	var state contact.State
	now, err := p.current(ctx, id, session, func(c *contact.Contact) error {
		state = c.State()
		return nil
	})
	switch {
	case err != nil:
		return ContactCreated{}, err
	case state.RequestHash != hash:
		return ContactCreated{}, errKeyReused()
	case state.Deleted:
		return ContactCreated{}, fault.New(fault.Gone, CodeContactDeleted, "the contact that this request had created is deleted")
	}
	if !state.ModifiedAt.IsZero() {
		now.ETag = ""
	}
	return ContactCreated{
		Contact: query.NewContact(state), ETag: now.ETag, SessionToken: now.SessionToken, Replayed: true,
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
	d := contact.Details{Name: name, Description: description, Email: email, Company: company}
	if !in.hasKey() {
		return d, nil
	}
	if err := in.validate(); err != nil {
		return contact.Details{}, err
	}
	var err error
	d.RequestHash, err = in.requestHash("CreateContact", in.FirstName, in.LastName, in.Description, in.Email, in.Company)
	return d, err
}
