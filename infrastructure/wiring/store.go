package wiring

import (
	"context"
	"strings"

	"go.uber.org/fx"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/contact"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
)

// stores are the kinds of stores, by the values of FEEDBOX_STORE. Nothing is made of those
// that are not chosen.
var stores = map[string]store{
	config.StoreCosmos:    cosmosStore{},
	config.StorePostgres:  postgresStore{},
	config.StoreFirestore: firestoreStore{},
}

// store makes the adapters of one kind of store. What it opens is closed by hooks of lc.
type store interface {
	// name is the store's in metrics and probes.
	name() string
	// api makes what the API needs; need is told how the store answers.
	api(lc fx.Lifecycle, p Params, cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error)
	// relay makes what a relay needs.
	relay(lc fx.Lifecycle, p Params, cfg *config.Relay, need *monitor.Dependency) (relayservice.Store, error)
	// operator makes what an operator needs.
	operator(p Params, cfg *config.Relay) (operator.Store, error)
}

// contactStore is a store as the API uses it.
type contactStore struct {
	work   command.UnitsOfWork[*contact.Contact]
	reader contacts.Reader
	audit  query.AuditReader
	verify func(ctx context.Context) error
}

// contract says which documents are events, as it is configured.
func contract(e config.Event) document.EventContract {
	types := make([]string, len(e.Types))
	for i, one := range e.Types {
		types[i] = strings.TrimSpace(one)
	}
	return document.EventContract{
		Type: e.TypeMember, Types: types, ID: e.IDMember, Key: e.KeyMember, Body: e.BodyMember, Subject: e.SubjectMember,
		Sequence: e.SequenceMember, Version: e.VersionMember, CreatedAt: e.CreatedAtMember, Traceparent: e.TraceparentMember,
	}
}
