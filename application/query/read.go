package query

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// Reader reads aggregates of one kind, whose states are S. It is safe for concurrent use.
type Reader[S any] interface {
	// Read returns one aggregate, also a deleted one. With ifNoneMatch, an aggregate that
	// still has this ETag is NotModified. Reads see at least what the session token
	// stands for.
	//
	// Faults: NotFound, NotModified, Invalid (malformed session token), Throttled,
	// Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifNoneMatch, sessionToken string) (Found[S], error)
}

// Found is an aggregate as it was read.
type Found[S any] struct {
	State        S
	Deleted      bool
	ETag         string // quoted as in HTTP
	SessionToken string
}

// Read asks for one aggregate.
type Read struct {
	ID uuid.UUID
	// IfNoneMatch are ETags the client has; "*" is any. If the aggregate's is one of
	// them, the answer is NotModified.
	IfNoneMatch []string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// One answers in; noun is what people call such an aggregate. An aggregate that was deleted
// is NotFound (code noun_not_found). Other faults: those of Reader.
func One[S any](ctx context.Context, r Reader[S], noun string, in Read) (Found[S], error) {
	// A single ETag is compared by the store, which then sends no document.
	single := ""
	if len(in.IfNoneMatch) == 1 && in.IfNoneMatch[0] != "*" {
		single = in.IfNoneMatch[0]
	}
	found, err := r.Read(ctx, in.ID, single, in.SessionToken)
	if err != nil {
		return Found[S]{}, err
	}
	if found.Deleted {
		return Found[S]{}, fault.Missing(noun, in.ID.String())
	}
	if slices.Contains(in.IfNoneMatch, "*") || slices.Contains(in.IfNoneMatch, found.ETag) {
		return Found[S]{}, fault.New(fault.NotModified, "", "the "+noun+" has not changed")
	}
	return found, nil
}
