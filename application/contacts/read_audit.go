package contacts

import (
	"context"

	"feedbox/application/query"
	"feedbox/domain/contact"
)

// ReadAudit asks for the audit trail of a contact, oldest change first. A deleted contact
// keeps its trail until the entries expire.
//
// Faults: NotFound (no such contact and no entries), Invalid (page size,
// continuation, session token), Throttled, Unavailable.
type ReadAudit struct{ query.Trail }

// Returns declares the answer.
func (ReadAudit) Returns(query.AuditPage) {}

func (p QueryPorts) readAudit(ctx context.Context, in ReadAudit) (query.AuditPage, error) {
	return query.ReadTrail(ctx, p.Audit, p.Contacts, in.Trail)
}

// Reader reads contacts. It is safe for concurrent use.
type Reader interface {
	query.Reader[contact.State]
	query.Pager[ContactItem]
}
