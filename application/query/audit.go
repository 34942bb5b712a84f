package query

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Trail asks for a page of the audit trail of an aggregate, oldest change first.
type Trail struct {
	ID uuid.UUID
	// PageSize is 1 to MaxPageSize; zero is DefaultPageSize.
	PageSize int
	// Continuation is that of the previous page; empty for the first page.
	Continuation string
	// SessionToken covers the writes that the client has seen; it may be empty.
	SessionToken string
}

// AuditPage is one page of an audit trail.
type AuditPage struct {
	Entries []AuditEntry
	// Continuation leads to the next page; empty on the last page.
	Continuation string
	SessionToken string
}

// AuditEntry records one change of an aggregate: the caller, the time and the events.
type AuditEntry struct {
	AggregateID uuid.UUID
	Version     int64 // of the aggregate, by this commit
	At          time.Time
	Principal   string // empty: anonymous
	Events      []AuditedEvent
}

// AuditedEvent is an event in the audit trail, without its content.
type AuditedEvent struct {
	ID       uuid.UUID
	Action   string
	Sequence int64
}

// AuditReader reads audit entries. It is safe for concurrent use.
type AuditReader interface {
	// Audit returns up to size entries of an aggregate, oldest first, starting at
	// continuation. Faults: Invalid, Throttled, Unavailable.
	Audit(ctx context.Context, aggregateID uuid.UUID, size int, continuation, sessionToken string) (AuditPage, error)
}

// ReadTrail returns the requested page. A deleted aggregate keeps its trail until the entries
// expire.
//
// Faults: NotFound (no such aggregate and no entries), Invalid (page size,
// continuation, session token), Throttled, Unavailable.
func ReadTrail[S any](ctx context.Context, audit AuditReader, r Reader[S], in Trail) (AuditPage, error) {
	size, err := PageSize(in.PageSize)
	if err != nil {
		return AuditPage{}, err
	}
	page, err := audit.Audit(ctx, in.ID, size, in.Continuation, in.SessionToken)
	if err != nil || len(page.Entries) > 0 || page.Continuation != "" || in.Continuation != "" {
		return page, err
	}
	// Without entries, the read distinguishes a missing aggregate from an empty trail.
	if _, err := r.Read(ctx, in.ID, "", in.SessionToken); err != nil {
		return AuditPage{}, err
	}
	return page, nil
}
