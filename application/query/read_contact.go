package query

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// ReadContact asks for one contact.
//
// Faults: NotFound (also for a deleted contact), NotModified, Invalid (malformed
// session token), Throttled, Unavailable.
type ReadContact struct {
	ContactID uuid.UUID
	// IfNoneMatch are ETags the client has; "*" is any. If the contact's is one of
	// them, the answer is NotModified.
	IfNoneMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// ContactRead answers ReadContact.
type ContactRead struct {
	Contact      Contact
	ETag         string
	SessionToken string
}

// Returns declares the answer.
func (ReadContact) Returns(ContactRead) {}

func (p Ports) readContact(ctx context.Context, in ReadContact) (ContactRead, error) {
	// A single ETag is compared by the store, which then sends no document.
	single := ""
	if len(in.IfNoneMatch) == 1 && in.IfNoneMatch[0] != "*" {
		single = in.IfNoneMatch[0]
	}
	found, err := p.Contacts.Read(ctx, in.ContactID, single, in.SessionToken)
	if err != nil {
		return ContactRead{}, err
	}
	if found.State.Deleted {
		return ContactRead{}, contact.NotFound(in.ContactID)
	}
	if slices.Contains(in.IfNoneMatch, "*") || slices.Contains(in.IfNoneMatch, found.ETag) {
		return ContactRead{}, fault.New(fault.NotModified, "", "the contact has not changed")
	}
	return ContactRead{Contact: NewContact(found.State), ETag: found.ETag, SessionToken: found.SessionToken}, nil
}
