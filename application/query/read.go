package query

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"feedbox/domain/fault"
)

// Reader reads aggregates of one kind, with state S. It is safe for concurrent use.
type Reader[S any] interface {
	// Read returns one aggregate, including a deleted one. It returns NotModified if the
	// aggregate's ETag is ifNoneMatch. It sees at least the writes that the session token
	// covers.
	//
	// Faults: NotFound, NotModified, Invalid (malformed session token), Throttled,
	// Unavailable.
	Read(ctx context.Context, id uuid.UUID, ifNoneMatch, sessionToken string) (Found[S], error)
}

// Found is the result of a read.
type Found[S any] struct {
	State        S
	Deleted      bool
	ETag         string // quoted as in HTTP
	SessionToken string
}

// Read asks for one aggregate.
type Read struct {
	ID uuid.UUID
	// IfNoneMatch lists ETags that the client has; "*" matches any. If the aggregate's
	// ETag is one of them, the answer is NotModified.
	IfNoneMatch []string
	// SessionToken covers the writes that the client has seen; it may be empty.
	SessionToken string
}

// One reads one aggregate; noun names it in faults. A deleted aggregate is NotFound (code
// noun_not_found). Other faults: those of Reader.
func One[S any](ctx context.Context, r Reader[S], noun string, in Read) (Found[S], error) {
	// The store compares a single ETag itself, and then sends no document.
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
