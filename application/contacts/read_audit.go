package contacts

import (
	"context"

	"feedbox/application/query"
)

// ReadAudit asks who changed a contact, oldest change first. A deleted contact has
// its trail for as long as the entries live.
//
// Faults: NotFound (no such contact and no entries), Invalid (page size,
// continuation, session token), Throttled, Unavailable.
type ReadAudit struct{ query.Trail }

// Returns declares the answer.
func (ReadAudit) Returns(query.AuditPage) {}

func (p QueryPorts) readAudit(ctx context.Context, in ReadAudit) (query.AuditPage, error) {
	return query.ReadTrail(ctx, p.Audit, p.Contacts, in.Trail)
}
