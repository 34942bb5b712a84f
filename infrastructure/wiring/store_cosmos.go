package wiring

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/infrastructure/operator"
	azureoperator "feedbox/infrastructure/operator/azure"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/relay/relayservice/azure"
	"feedbox/infrastructure/store/cosmos"
	contactdocs "feedbox/infrastructure/store/cosmos/contacts"
	"feedbox/infrastructure/store/document"
	contactkind "feedbox/infrastructure/store/document/contacts"
)

// cosmosStore is Cosmos DB.
type cosmosStore struct{}

func (cosmosStore) name() string { return azure.StoreName }

func (cosmosStore) api(_ fx.Lifecycle, p Params, cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	account := &cosmos.Account{}
	client, err := p.cosmosClient(cfg.Cosmos, t.AzureTracing(), account, need)
	if err != nil {
		return nil, err
	}
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container)
	if err != nil {
		return nil, err
	}
	s := &contactStore{verify: func(ctx context.Context) error {
		needed := azureoperator.Containers(operator.ProcessAPI, cfg.Cosmos, document.EventContract{})
		err := cosmos.Verify(ctx, client, cfg.Cosmos.Database, needed...)
		return errors.Join(account.Verify(), err)
	}}
	var err1, err2, err3 error
	s.work, err1 = cosmos.NewUnitsOfWork(container, contactkind.Kind(), m, &cosmos.Options{
		EventTTL: cfg.EventTTL, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent,
	})
	s.reader, err2 = contactdocs.NewReader(container)
	s.audit, err3 = cosmos.NewAuditReader(container)
	return s, errors.Join(err1, err2, err3)
}

func (cosmosStore) relay(_ fx.Lifecycle, p Params, cfg *config.Relay, need *monitor.Dependency) (relayservice.Store, error) {
	account := &cosmos.Account{}
	client, err := p.feedClient(cfg.Cosmos, account, need)
	if err != nil {
		return relayservice.Store{}, err
	}
	return azure.Store(client, &azure.StoreOptions{
		Database: cfg.Cosmos.Database, Data: cfg.Cosmos.Container, Leases: cfg.Cosmos.Leases, Parked: cfg.Cosmos.Parked,
		Contract: contract(cfg.Event), Account: account,
	})
}

func (cosmosStore) operator(p Params, cfg *config.Relay) (operator.Store, error) {
	clients := azureoperator.StoreClients{Clock: &azureoperator.Clock{}, Account: &cosmos.Account{}}
	var err error
	if clients.Cosmos, err = p.feedClient(cfg.Cosmos, clients.Clock, clients.Account); err != nil {
		return operator.Store{}, err
	}
	if !cfg.Cosmos.Key.IsSet() {
		if clients.Identity, err = p.credential(); err != nil {
			return operator.Store{}, err
		}
	}
	return azureoperator.Store(cfg.Cosmos, contract(cfg.Event), clients)
}
