package command

import (
	"context"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/domain/fault"
)

// Journal is a unit of work that stores notes in the same transaction as the
// contact: which request was answered, and who did what. A unit of work that is
// none serves neither idempotency keys of updates nor an audit trail.
type Journal interface {
	// NoteRequest makes the commit remember r, even if nothing else is pending. If a
	// request of that id was answered before, the commit fails with Conflict.
	NoteRequest(r Request) error
	// FindRequest returns the note about an earlier request. Faults: NotFound,
	// Throttled, Unavailable.
	FindRequest(ctx context.Context, contactID uuid.UUID, id string) (Request, error)
	// NoteAudit makes the commit store e.
	NoteAudit(e query.AuditEntry) error
}

// Request is the note about a request that was answered.
type Request struct {
	// ID is derived from principal and key.
	ID        string
	ContactID uuid.UUID
	// Hash tells requests under the same key apart.
	Hash string
	// CommandID is new for each execution, so that one that was stored is not taken
	// for another's.
	CommandID uuid.UUID
	CreatedAt time.Time
}

func journalOf(work UnitOfWork) (Journal, error) {
	if journal, ok := work.(Journal); ok {
		return journal, nil
	}
	return nil, fault.New(fault.Internal, "", "the store keeps no notes: it serves neither idempotency keys nor audit entries")
}

// commit commits work, with an audit entry if there is something to enter.
func (p Ports) commit(ctx context.Context, work UnitOfWork, c *contact.Contact, sender Sender) (Receipt, error) {
	if commit, changed := c.Pending(); changed && p.Audit {
		journal, err := journalOf(work)
		if err != nil {
			return Receipt{}, err
		}
		entry := query.AuditEntry{ContactID: c.ID(), Version: commit.State.Version, At: p.Now(), Principal: sender.Principal}
		for _, e := range commit.Events {
			meta := e.Metadata()
			entry.Events = append(entry.Events, query.AuditedEvent{ID: meta.ID, Action: e.Action(), Sequence: meta.Sequence})
		}
		if err := journal.NoteAudit(entry); err != nil {
			return Receipt{}, err
		}
	}
	return work.Commit(ctx)
}
