package rows

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"feedbox/application/query"
)

// AuditReader reads audit trails. It is safe for concurrent use.
type AuditReader struct{ Store Store }

var _ query.AuditReader = AuditReader{}

// Audit implements query.AuditReader. The continuation is the version of the last entry.
func (r AuditReader) Audit(ctx context.Context, id uuid.UUID, size int, continuation, session string) (page query.AuditPage, err error) {
	if err := sessionFault(session); err != nil {
		return page, err
	}
	after := int64(0)
	if continuation != "" {
		if after, err = strconv.ParseInt(continuation, 10, 64); err != nil {
			return page, continuationFault(err)
		}
	}
	if page.Entries, err = r.Store.Audits(ctx, id, after, size+1); err != nil {
		return query.AuditPage{}, err
	}
	if len(page.Entries) > size {
		page.Entries = page.Entries[:size]
		page.Continuation = strconv.FormatInt(page.Entries[size-1].Version, 10)
	}
	return page, nil
}

// auditedEvent is an event of an audit entry as it is stored.
type auditedEvent struct {
	ID       uuid.UUID `json:"id"`
	Action   string    `json:"action"`
	Sequence int64     `json:"sequence"`
}

// EncodeAudited returns the events of an audit entry as they are stored.
func EncodeAudited(events []query.AuditedEvent) (string, error) {
	stored := make([]auditedEvent, len(events))
	for i, e := range events {
		stored[i] = auditedEvent(e)
	}
	text, err := json.Marshal(stored)
	return string(text), err
}

// DecodeAudited reads what EncodeAudited has written.
func DecodeAudited(text []byte) ([]query.AuditedEvent, error) {
	var stored []auditedEvent
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, err
	}
	events := make([]query.AuditedEvent, len(stored))
	for i, e := range stored {
		events[i] = query.AuditedEvent(e)
	}
	return events, nil
}
