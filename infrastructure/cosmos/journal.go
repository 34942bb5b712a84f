package cosmos

import (
	"context"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
)

// NoteRequest implements command.Journal.
func (w *UnitOfWork) NoteRequest(r command.Request) error {
	o, err := encodeRequest(r, w.context.options.RequestTTL)
	if err != nil {
		return err
	}
	w.requests = append(w.requests, o)
	return nil
}

// FindRequest implements command.Journal. It asks the primary: whether a request
// was answered is not to be decided by a replica that lags behind.
func (w *UnitOfWork) FindRequest(ctx context.Context, contactID uuid.UUID, id string) (command.Request, error) {
	o, err := w.context.readPrimary(ctx, partitionKeyOf(contactID), requestDocumentID(id))
	if err != nil {
		return command.Request{}, err
	}
	return decodeRequest(id, o)
}

// NoteAudit implements command.Journal.
func (w *UnitOfWork) NoteAudit(e query.AuditEntry) error {
	o, err := encodeAudit(e, w.context.options.AuditTTL)
	if err != nil {
		return err
	}
	w.audits = append(w.audits, o)
	return nil
}
