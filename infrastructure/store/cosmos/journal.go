package cosmos

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
)

func (t *transaction[A]) NoteRequest(r command.Request) error {
	o, err := encodeRequest(r, t.kind.IDMember, t.documents.options.RequestTTL)
	if err != nil {
		return err
	}
	t.requests = append(t.requests, o)
	return nil
}

// FindRequest implements command.Journal. It asks the primary, because a replica that lags
// may miss a request that was answered.
func (t *transaction[A]) FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	o, err := t.documents.readPrimary(ctx, partitionKeyOf(aggregateID), requestDocumentID(id))
	if err != nil {
		return command.Request{}, err
	}
	return decodeRequest(id, aggregateID, o)
}

func (t *transaction[A]) NoteAudit(e query.AuditEntry) error {
	o, err := encodeAudit(e, t.kind.IDMember, t.documents.options.AuditTTL)
	if err != nil {
		return err
	}
	t.audits = append(t.audits, o)
	return nil
}
