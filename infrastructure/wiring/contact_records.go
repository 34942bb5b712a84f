package wiring

import (
	"context"
	"errors"

	"feedbox/application/mediator"
	"feedbox/infrastructure/process/config"
	contactkind "feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/recordstore"
	contactrecords "feedbox/infrastructure/store/recordstore/contacts"
)

// contactsIn returns the API's part of a record store.
func contactsIn(store recordstore.Store, cfg *config.API, m *mediator.Mediator, verify func(ctx context.Context) error) (*contactStore, error) {
	s := &contactStore{audit: recordstore.AuditReader{Store: store}, verify: verify}
	var err1, err2 error
	s.work, err1 = recordstore.NewUnitsOfWork(store, contactkind.Kind(), m, &recordstore.Options{
		EventTTL: cfg.EventTTL, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent,
	})
	s.reader, err2 = contactrecords.NewReader(store)
	return s, errors.Join(err1, err2)
}
