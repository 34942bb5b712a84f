package command

import (
	"context"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
)

// Journal is the part of a unit of work that stores notes in the same transaction as the
// aggregate: answered requests and audit entries.
type Journal interface {
	// NoteRequest makes the commit store r, even if nothing else is pending. The commit
	// fails with Conflict if a note of that id exists.
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
	// Hash distinguishes requests under the same key.
	Hash string
	// CommandID is new for each execution. After a lost answer it shows whether the stored
	// note is from this execution.
	CommandID uuid.UUID
	CreatedAt time.Time
	// Version is the version of the aggregate after the request; 0 in notes that are older
	// than this field.
	Version int64
}
