package wiring

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/store/document"
	contactkind "feedbox/infrastructure/store/document/contacts"
	"feedbox/infrastructure/store/recordstore"
	contactrecords "feedbox/infrastructure/store/recordstore/contacts"
)

// stores holds the kinds of stores by the values of FEEDBOX_STORE. Only the chosen kind
// builds adapters.
var stores = map[string]store{
	config.StoreCosmos:    cosmosStore{},
	config.StorePostgres:  postgresStore{},
	config.StoreFirestore: firestoreStore{},
}

// store builds the adapters of one kind of store.
type store interface {
	// name identifies the store in metrics and probes.
	name() string
	// api opens the store for the API. Hooks of lc close it; need receives the outcome of
	// each use.
	api(lc fx.Lifecycle, p Params, cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error)
	// open opens the store for a relay or an operator, which must close it.
	open(p Params, cfg *config.Relay, u use) (operator.Store, error)
}

// use is the purpose for which a store is opened.
type use struct {
	// note receives the outcome of each use of the store. Default: ignored.
	note func(err error)
	// poll lets reads of the feed wait for changes. An operator asks once and must not wait.
	poll bool
}

// contactStore has the adapters of the API.
type contactStore struct {
	work   contacts.UnitsOfWork
	reader contacts.Reader
	audit  query.AuditReader
	verify func(ctx context.Context) error
}

// contract returns the configured contract of events.
func contract(e config.Event) document.EventContract {
	return document.EventContract{
		Type: e.TypeMember, Types: e.Types, ID: e.IDMember, Key: e.KeyMember, Body: e.BodyMember, Subject: e.SubjectMember,
		Sequence: e.SequenceMember, Ordinal: e.OrdinalMember, Version: e.VersionMember, CreatedAt: e.CreatedAtMember, Traceparent: e.TraceparentMember,
	}
}

// contactsIn returns the API's part of a record store.
func contactsIn(store recordstore.Store, cfg *config.API, m *mediator.Mediator, verify func(ctx context.Context) error) (*contactStore, error) {
	s := &contactStore{audit: recordstore.AuditReader{Store: store}, verify: verify}
	var err1, err2 error
	s.work, err1 = recordstore.NewUnitsOfWork(store, contactkind.Kind(), m, &recordstore.Options{
		EventTTL: cfg.EventTTL, MaxEventBytes: cfg.MaxEventBytes, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent,
	})
	s.reader, err2 = contactrecords.NewReader(store)
	return s, errors.Join(err1, err2)
}
