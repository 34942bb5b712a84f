package query

import (
	"cmp"
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
	size, err := pageSize(in.PageSize)
	if err != nil {
		return ContactPage{}, err
	}
	return p.Contacts.Page(ctx, size, in.Continuation, in.SessionToken)
}

// pageSize returns the size asked for, or the default for zero.
func pageSize(asked int) (int, error) {
	size := cmp.Or(asked, DefaultPageSize)
	if size < 1 || size > MaxPageSize {
		return 0, fault.Fields(fault.Field{
			Pointer: "/pageSize",
			Message: fmt.Sprintf("must be from 1 to %d", MaxPageSize),
		})
	}
	return size, nil
}
