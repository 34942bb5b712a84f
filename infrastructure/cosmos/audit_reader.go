package cosmos

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"

	"feedbox/application/query"
)

// auditQuery runs within one partition key, where the service orders by itself.
const auditQuery = `SELECT VALUE c.data FROM c WHERE c.type = @type ORDER BY c.data.version`

var _ query.AuditReader = (*ContactReader)(nil)

// Audit implements query.AuditReader.
func (r *ContactReader) Audit(ctx context.Context, contactID uuid.UUID, size int, continuation, session string) (query.AuditPage, error) {
	token, err := parseSessionToken(session)
	if err != nil {
		return query.AuditPage{}, err
	}
	options := &azcosmos.QueryOptions{
		PageSizeHint:    int32(size), //nolint:gosec // at most query.MaxPageSize
		SessionToken:    token.option(),
		QueryParameters: []azcosmos.QueryParameter{{Name: "@type", Value: typeAudit}},
	}
	if continuation != "" {
		options.ContinuationToken = &continuation
	}
	reply, err := r.container.NewQueryItemsPager(auditQuery, keyValue(partitionKeyOf(contactID)), options).NextPage(ctx)
	if err != nil {
		return query.AuditPage{}, pageFault("read the audit trail of "+contactID.String(), err, continuation)
	}
	token.merge(header(reply.RawResponse, headerSessionToken))
	page := query.AuditPage{SessionToken: token.String()}
	for _, raw := range reply.Items {
		var data auditData
		if err := json.Unmarshal(raw, &data); err != nil {
			return query.AuditPage{}, fmt.Errorf("read the audit trail of %s: decode an entry: %w", contactID, err)
		}
		page.Entries = append(page.Entries, data.entry())
	}
	if reply.ContinuationToken != nil {
		page.Continuation = *reply.ContinuationToken
	}
	return page, nil
}
