package contacts

import (
	"context"

	"feedbox/application/query"
)

// ReadContact asks for one contact.
//
// Faults: NotFound (also for a deleted contact), NotModified, Invalid (malformed
// session token), Throttled, Unavailable.
type ReadContact struct{ query.Read }

// ContactRead is the answer of ReadContact.
type ContactRead struct {
	Contact      Contact
	ETag         string
	SessionToken string
}

// Returns declares the answer.
func (ReadContact) Returns(ContactRead) {}

func (p QueryPorts) readContact(ctx context.Context, in ReadContact) (ContactRead, error) {
	found, err := query.One(ctx, p.Contacts, Noun, in.Read)
	if err != nil {
		return ContactRead{}, err
	}
	return ContactRead{Contact: NewContact(found.State), ETag: found.ETag, SessionToken: found.SessionToken}, nil
}
