package command

import (
	"context"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

// UnitsOfWork starts units of work. It is safe for concurrent use.
type UnitsOfWork interface {
	// Begin returns a unit of work whose reads see at least what the session token
	// stands for. An empty token stands for nothing; a malformed one is
	// fault.Invalid.
	Begin(sessionToken string) (UnitOfWork, error)
}

// UnitOfWork collects the changes of one command and stores them in one
// transaction. It serves one goroutine and one commit at a time. Dropping it
// without a commit writes nothing.
type UnitOfWork interface {
	Journal
	// Contacts returns the contacts as this unit of work sees them.
	Contacts() Contacts
	// Commit stores the pending changes of all contacts that were added or read, with
	// their events: everything or nothing. When nothing is pending it writes nothing,
	// but makes sure that what was read is current.
	//
	// Faults: Conflict (a contact of that id exists), PreconditionFailed (a contact
	// read here was changed by another), NotFound (it vanished), TooLarge, Throttled,
	// Unavailable (code "outcome_unknown" if it may have been stored all the same).
	Commit(ctx context.Context) (Receipt, error)
	// SessionToken stands for all this unit of work has seen, failed commits
	// included. It may be empty.
	SessionToken() string
}

// Contacts is the collection of contacts within one unit of work.
type Contacts interface {
	// Add takes a new contact, to be stored by the commit. If a contact of its id was
	// deleted and is gone, the new one continues its version and sequence. Faults:
	// Throttled, Unavailable.
	Add(ctx context.Context, c *contact.Contact) error
	// Read returns the contact; the commit stores what is changed in it. With
	// ifMatch, one of these ETags must be the contact's ("*" is any), else
	// PreconditionFailed.
	//
	// A deleted contact is returned as such, whatever ifMatch says. Faults: NotFound, PreconditionFailed,
	// Throttled, Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifMatch []string) (*contact.Contact, error)
}

// Receipt says what a commit has left.
type Receipt struct {
	// ETag is the contact's, quoted as in HTTP. It is empty when the commit was made
	// but its answer was lost and the contact has been changed by another since.
	ETag string
	// SessionToken makes a later read see this commit. It may be empty.
	SessionToken string
}
