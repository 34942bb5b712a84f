package recordstore

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"feedbox/application/query"
)

// AuditReader reads audit trails. It is safe for concurrent use.
type AuditReader struct{ Store Store }

// Audit implements query.AuditReader. The continuation is the version of the last entry of the
// page.
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

// EncodeAudited returns the events of an audit entry as JSON. It needs no counterpart: the JSON
// decodes into query.AuditedEvent, because encoding/json ignores the case of names.
func EncodeAudited(events []query.AuditedEvent) string {
	type stored struct {
		ID       uuid.UUID `json:"id"`
		Action   string    `json:"action"`
		Sequence int64     `json:"sequence"`
	}
	list := make([]stored, len(events))
	for i, e := range events {
		list[i] = stored(e)
	}
	text, _ := json.Marshal(list) // never fails
	return string(text)
}
