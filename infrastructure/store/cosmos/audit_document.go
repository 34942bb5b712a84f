package cosmos

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"feedbox/application/query"
	"feedbox/infrastructure/store/document"
)

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
