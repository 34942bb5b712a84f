package contacts

import (
	"context"

	"feedbox/application/query"
)

// ReadContacts asks for a page of contacts that are not deleted, in no defined order.
//
// Faults: Invalid (page size, continuation, session token), Throttled, Unavailable.
type ReadContacts struct {
	// PageSize is 1 to query.MaxPageSize; zero is query.DefaultPageSize.
	PageSize int
	// Continuation is that of the previous page; empty for the first page. Its format is
	// private to the store.
	Continuation string
	// SessionToken covers the writes that the client has seen; it may be empty.
	SessionToken string
}

// ContactPage is the answer of ReadContacts.
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
