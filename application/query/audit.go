package query

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Trail asks who changed an aggregate, oldest change first.
type Trail struct {
	ID uuid.UUID
	// PageSize is 1 to MaxPageSize; zero is DefaultPageSize.
	PageSize int
	// Continuation is that of the page before; empty is the first page.
	Continuation string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// AuditPage is one page of an audit trail.
type AuditPage struct {
	Entries []AuditEntry
	// Continuation leads to the next page; empty: this is the last.
	Continuation string
	SessionToken string
}

// AuditEntry says who changed an aggregate, when, and which events came of it.
type AuditEntry struct {
	AggregateID uuid.UUID
	Version     int64 // of the aggregate, by this commit
	At          time.Time
	Principal   string // empty: anybody
	Events      []AuditedEvent
}

// AuditedEvent is an event as the audit trail shows it: without its content.
type AuditedEvent struct {
	ID       uuid.UUID
	Action   string
	Sequence int64
}

// AuditReader reads audit entries. It is safe for concurrent use.
type AuditReader interface {
	// Audit returns up to size entries of an aggregate, oldest first, from where
	// continuation ends. Faults: Invalid, Throttled, Unavailable.
	Audit(ctx context.Context, aggregateID uuid.UUID, size int, continuation, sessionToken string) (AuditPage, error)
}

// ReadTrail answers in. A deleted aggregate has its trail for as long as the entries live.
//
// Faults: NotFound (no such aggregate and no entries), Invalid (page size,
// continuation, session token), Throttled, Unavailable.
func ReadTrail[S any](ctx context.Context, audit AuditReader, r Reader[S], in Trail) (AuditPage, error) {
	size, err := PageSize(in.PageSize)
	if err != nil {
		return AuditPage{}, err
	}
	page, err := audit.Audit(ctx, in.ID, size, in.Continuation, in.SessionToken)
	if err != nil || len(page.Entries) > 0 || in.Continuation != "" {
		return page, err
	}
	// No entries: is there no aggregate, or only no trail?
	if _, err := r.Read(ctx, in.ID, "", in.SessionToken); err != nil {
		return AuditPage{}, err
	}
	return page, nil
}
