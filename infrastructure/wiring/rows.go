package wiring

import (
	"context"
	"errors"

	"feedbox/application/mediator"
	"feedbox/infrastructure/config"
	contactkind "feedbox/infrastructure/document/contacts"
	"feedbox/infrastructure/rows"
	contactrows "feedbox/infrastructure/rows/contacts"
)

// contactsIn is what the API needs of a store that keeps rows.
func contactsIn(store rows.Store, cfg *config.API, m *mediator.Mediator, verify func(ctx context.Context) error) (*contactStore, error) {
	s := &contactStore{audit: rows.AuditReader{Store: store}, verify: verify}
	var err1, err2 error
	s.work, err1 = rows.NewUnitsOfWork(store, contactkind.Kind(), m, &rows.Options{
		EventTTL: cfg.EventTTL, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent,
	})
	s.reader, err2 = contactrows.NewReader(store)
	return s, errors.Join(err1, err2)
}
