package cosmos

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
)

// NoteRequest implements command.Journal.
func (w *UnitOfWork[A]) NoteRequest(r command.Request) error {
	o, err := encodeRequest(r, w.kind.IDMember, w.documents.options.RequestTTL)
	if err != nil {
		return err
	}
	w.requests = append(w.requests, o)
	return nil
}

// FindRequest implements command.Journal. It asks the primary: whether a request
// was answered is not to be decided by a replica that lags behind.
func (w *UnitOfWork[A]) FindRequest(ctx context.Context, aggregateID uuid.UUID, id string) (command.Request, error) {
	o, err := w.documents.readPrimary(ctx, partitionKeyOf(aggregateID), requestDocumentID(id))
	if err != nil {
		return command.Request{}, err
	}
	return decodeRequest(id, aggregateID, o)
}

// NoteAudit implements command.Journal.
func (w *UnitOfWork[A]) NoteAudit(e query.AuditEntry) error {
	o, err := encodeAudit(e, w.kind.IDMember, w.documents.options.AuditTTL)
	if err != nil {
		return err
	}
	w.audits = append(w.audits, o)
	return nil
}
