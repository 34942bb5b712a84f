package contacts

import (
	"context"

	"feedbox/application/query"
)

// ReadContacts asks for a page of contacts that are not deleted, in no promised
// order.
//
// Faults: Invalid (page size, continuation, session token), Throttled, Unavailable.
type ReadContacts struct {
	// PageSize is 1 to query.MaxPageSize; zero is query.DefaultPageSize.
	PageSize int
	// Continuation is that of the page before; empty is the first page. It is the
	// store's and means nothing to anybody else.
	Continuation string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// ContactPage answers ReadContacts.
type ContactPage = query.Page[ContactItem]

// Returns declares the answer.
func (ReadContacts) Returns(ContactPage) {}

func (p QueryPorts) readContacts(ctx context.Context, in ReadContacts) (ContactPage, error) {
	size, err := query.PageSize(in.PageSize)
	if err != nil {
		return ContactPage{}, err
	}
	return p.Contacts.Page(ctx, size, in.Continuation, in.SessionToken)
}
