package cosmos

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/infrastructure/cosmos/internal/store"
)

// auditQuery runs within one partition key, where the service orders by itself.
const auditQuery = `SELECT VALUE c.data FROM c WHERE c.type = @type ORDER BY c.data.version`

var _ query.AuditReader = (*ContactReader)(nil)

// Audit implements query.AuditReader.
func (r *ContactReader) Audit(ctx context.Context, contactID uuid.UUID, size int, continuation, session string) (query.AuditPage, error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.AuditPage{}, err
	}
	of := documents{what: "read the audit trail of " + contactID.String(), query: auditQuery, key: keyValue(partitionKeyOf(contactID)), kind: typeAudit}
	var page query.AuditPage
	page.Continuation, err = readPage(ctx, r.container, of, size, continuation, &token, func(data auditData) {
		page.Entries = append(page.Entries, data.entry())
	})
	page.SessionToken = token.String()
	return page, err
}
