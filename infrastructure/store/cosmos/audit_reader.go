package cosmos

import (
	"context"
	"errors"
	"fmt"
	"time"

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

type auditData struct {
	Version   int64              `json:"version"`
	At        time.Time          `json:"at"`
	Principal string             `json:"principal,omitempty"`
	Events    []auditedEventData `json:"events"`
}

type auditedEventData struct {
	ID       uuid.UUID `json:"id"`
	Action   string    `json:"action"`
	Sequence int64     `json:"sequence"`
}

// auditDocumentID returns an id that is unique per commit, because each commit has its version.
func auditDocumentID(version int64) string { return fmt.Sprintf("audit-%d", version) }

func encodeAudit(e query.AuditEntry, idMember string, ttl time.Duration) (DataObject, error) {
	data := auditData{Version: e.Version, At: e.At, Principal: e.Principal}
	for _, one := range e.Events {
		data.Events = append(data.Events, auditedEventData(one))
	}
	raw, err := marshalWithID(idMember, e.AggregateID, data)
	if err != nil {
		return DataObject{}, fmt.Errorf("encode audit entry %d of %s: %w", e.Version, e.AggregateID, err)
	}
	key := partitionKeyOf(e.AggregateID)
	return DataObject{ID: auditDocumentID(e.Version), PartitionKey: key, Type: document.TypeAudit, Data: raw, TTL: seconds(ttl)}, nil
}

func (d auditData) entry(aggregateID uuid.UUID) query.AuditEntry {
	e := query.AuditEntry{AggregateID: aggregateID, Version: d.Version, At: d.At, Principal: d.Principal}
	for _, one := range d.Events {
		e.Events = append(e.Events, query.AuditedEvent(one))
	}
	return e
}
