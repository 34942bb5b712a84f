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

// Pager reads aggregates of one kind page by page, as items I. It is safe for concurrent
// use.
type Pager[I any] interface {
	// Page returns up to size aggregates that are not deleted, in no defined order,
	// starting at continuation (empty: at the start). A short or empty page may still have
	// a next one.
	//
	// Faults: Invalid (malformed session token or continuation), Throttled, Unavailable.
	Page(ctx context.Context, size int, continuation, sessionToken string) (Page[I], error)
}

// Page is one page of a listing.
type Page[I any] struct {
	Items []I
	// Continuation leads to the next page, which may be empty. It is empty on the last
	// page.
	Continuation string
	SessionToken string
}

// PageSize returns the requested page size, or the default for zero. A size out of bounds
// returns Invalid.
func PageSize(asked int) (int, error) {
	size := cmp.Or(asked, DefaultPageSize)
	if size < 1 || size > MaxPageSize {
		return 0, fault.Fields(fault.Field{
			Pointer: "/pageSize",
			Message: fmt.Sprintf("must be from 1 to %d", MaxPageSize),
		})
	}
	return size, nil
}

// MapPage returns p with its items converted.
func MapPage[A, B any](p Page[A], item func(A) B) Page[B] {
	other := Page[B]{Items: make([]B, len(p.Items)), Continuation: p.Continuation, SessionToken: p.SessionToken}
	for i, one := range p.Items {
		other.Items[i] = item(one)
	}
	return other
}
