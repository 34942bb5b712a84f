package query

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// ReadAudit asks who changed a contact, oldest change first. A deleted contact has
// its trail for as long as the entries live.
//
// Faults: NotFound (no such contact and no entries), Invalid (page size,
// continuation, session token), Throttled, Unavailable.
type ReadAudit struct {
	ContactID uuid.UUID
	// PageSize is 1 to MaxPageSize; zero is DefaultPageSize.
	PageSize int
	// Continuation is that of the page before; empty is the first page.
	Continuation string
	// SessionToken is what the client has seen so far; it may be empty.
	SessionToken string
}

// AuditPage answers ReadAudit.
type AuditPage struct {
	Entries []AuditEntry
	// Continuation leads to the next page; empty: this is the last.
	Continuation string
	SessionToken string
}

// AuditEntry says who changed a contact, when, and which events came of it.
type AuditEntry struct {
	ContactID uuid.UUID
	Version   int64 // of the contact, by this commit
	At        time.Time
	Principal string // empty: anybody
	Events    []AuditedEvent
}

// AuditedEvent is an event as the audit trail shows it: without its content.
type AuditedEvent struct {
	ID       uuid.UUID
	Action   string
	Sequence int64
}

// AuditReader reads audit entries. It is safe for concurrent use.
type AuditReader interface {
	// Audit returns up to size entries of a contact, oldest first, from where
	// continuation ends. Faults: Invalid, Throttled, Unavailable.
	Audit(ctx context.Context, contactID uuid.UUID, size int, continuation, sessionToken string) (AuditPage, error)
}

// Returns declares the answer.
func (ReadAudit) Returns(AuditPage) {}

func (p Ports) readAudit(ctx context.Context, in ReadAudit) (AuditPage, error) {
	size, err := pageSize(in.PageSize)
	if err != nil {
		return AuditPage{}, err
	}
	page, err := p.Audit.Audit(ctx, in.ContactID, size, in.Continuation, in.SessionToken)
	if err != nil || len(page.Entries) > 0 || in.Continuation != "" {
		return page, err
	}
	// No entries: is there no contact, or only no trail?
	if _, err := p.Contacts.Read(ctx, in.ContactID, "", in.SessionToken); err != nil {
		return AuditPage{}, err
	}
	return page, nil
}
