package command

import (
	"context"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
)

// Journal is the part of a unit of work that stores notes in the same transaction as
// the aggregate: which request was answered, and who did what.
type Journal interface {
	// NoteRequest makes the commit remember r, even if nothing else is pending. If a
	// request of that id was answered before, the commit fails with Conflict.
	NoteRequest(r Request) error
	// FindRequest returns the note about an earlier request. Faults: NotFound,
	// Throttled, Unavailable.
	FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (Request, error)
	// NoteAudit makes the commit store e.
	NoteAudit(e query.AuditEntry) error
}

// Request is the note about a request that was answered.
type Request struct {
	// ID is derived from principal and key.
	ID          string
	AggregateID uuid.UUID
	// Hash tells requests under the same key apart.
	Hash string
	// CommandID is new for each execution, so that one that was stored is not taken
	// for another's.
	CommandID uuid.UUID
	CreatedAt time.Time
	// Version is the aggregate's after the request. 0: not known, as of a note that was
	// left before versions were noted.
	Version int64
}
