package query

import (
	"context"
	"fmt"

	"feedbox/domain/fault"
)

// The bounds of a page.
const (
	DefaultPageSize = 10
	MaxPageSize     = 100
)

// ReadContacts asks for a page of contacts that are not deleted, in no promised
// order.
//
// Faults: Invalid (page size, continuation, session token), Throttled, Unavailable.
type ReadContacts struct {
	// PageSize is 1 to MaxPageSize; zero is DefaultPageSize.
	PageSize int
	// Continuation is that of the page before; empty is the first page. It is the
	// store's and means nothing to anybody else.
	Continuation string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// ContactPage answers ReadContacts.
type ContactPage struct {
	Items []ContactItem
	// Continuation leads to the next page; empty: this is the last. The next page
	// may turn out to be empty.
	Continuation string
	SessionToken string
}

// Returns declares the answer.
func (ReadContacts) Returns(ContactPage) {}

func (p Ports) readContacts(ctx context.Context, in ReadContacts) (ContactPage, error) {
	size := in.PageSize
	if size == 0 {
		size = DefaultPageSize
	}
	if size < 1 || size > MaxPageSize {
		return ContactPage{}, fault.Fields(fault.Field{
			Pointer: "/pageSize",
			Message: fmt.Sprintf("must be from 1 to %d", MaxPageSize),
		})
	}
	return p.Contacts.Page(ctx, size, in.Continuation, in.SessionToken)
}
