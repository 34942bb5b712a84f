package cosmos

import (
	"context"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/infrastructure/store/cosmos/internal/store"
	"feedbox/infrastructure/store/document"
)

// auditQuery runs within one partition key, where the service supports ORDER BY.
const auditQuery = `SELECT VALUE c.data FROM c WHERE c.type = @type ORDER BY c.data.version`

// AuditReader reads audit trails. It is safe for concurrent use.
type AuditReader struct {
	container *azcosmos.ContainerClient
}

// NewAuditReader returns a reader of the audit trails in container.
func NewAuditReader(container *azcosmos.ContainerClient) (*AuditReader, error) {
	if container == nil {
		return nil, errors.New("cosmos: an audit reader needs a container")
	}
	return &AuditReader{container: container}, nil
}

// Audit implements query.AuditReader.
func (r *AuditReader) Audit(ctx context.Context, id uuid.UUID, size int, continuation, session string) (query.AuditPage, error) {
	token, err := store.ParseSession(session)
	if err != nil {
		return query.AuditPage{}, err
	}
	of := documents{what: "read the audit trail of " + id.String(), query: auditQuery, key: keyValue(partitionKeyOf(id)), kind: document.TypeAudit}
	var page query.AuditPage
	page.Continuation, err = readPage(ctx, r.container, of, size, continuation, &token, func(data auditData) error {
		page.Entries = append(page.Entries, data.entry(id))
		return nil
	})
	page.SessionToken = token.String()
	return page, err
}
