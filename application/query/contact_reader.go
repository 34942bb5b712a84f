package query

import (
	"context"

	"github.com/google/uuid"

	"feedbox/domain/contact"
)

// ContactReader reads contacts. It is safe for concurrent use.
type ContactReader interface {
	// Read returns one contact, also a deleted one. With ifNoneMatch, a contact that
	// still has this ETag is NotModified. Reads see at least what the session token
	// stands for.
	//
	// Faults: NotFound, NotModified, Invalid (malformed session token), Throttled,
	// Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifNoneMatch, sessionToken string) (Found, error)
	// Page returns up to size contacts that are not deleted, in no promised order,
	// from where continuation ends (empty: from the start). A page may be short, even
	// empty, and have a successor.
	//
	// Faults: Invalid (malformed session token or continuation), Throttled, Unavailable.
	Page(ctx context.Context, size int, continuation, sessionToken string) (ContactPage, error)
}

// Found is a contact as it was read.
type Found struct {
	State        contact.State
	ETag         string // quoted as in HTTP
	SessionToken string
}
