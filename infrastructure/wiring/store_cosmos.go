package wiring

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/store/cosmos"
	contactdocs "feedbox/infrastructure/store/cosmos/contacts"
	"feedbox/infrastructure/store/cosmos/cosmosrelay"
	"feedbox/infrastructure/store/cosmos/doctor"
	"feedbox/infrastructure/store/document"
	contactkind "feedbox/infrastructure/store/document/contacts"
)

// cosmosStore is Cosmos DB.
type cosmosStore struct{}

func (cosmosStore) name() string { return cosmosrelay.Name }

func (cosmosStore) api(_ fx.Lifecycle, p Params, cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	account := &cosmos.Account{}
	client, err := p.cosmosClient(cfg.Cosmos, t.AzureTracing(), account, cosmos.Answers(need.Note))
	if err != nil {
		return nil, err
	}
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container)
	if err != nil {
		return nil, err
	}
	s := &contactStore{verify: func(ctx context.Context) error {
		needed := doctor.Containers(operator.ProcessAPI, cfg.Cosmos, document.EventContract{})
		err := cosmos.Verify(ctx, client, cfg.Cosmos.Database, needed...)
		if err == nil || account.Level() != "" { // otherwise both would report the same outage
			err = errors.Join(account.Verify(), err)
		}
		return err
	}}
	var err1, err2, err3 error
	s.work, err1 = cosmos.NewUnitsOfWork(container, contactkind.Kind(), m, &cosmos.Options{
		EventTTL: cfg.EventTTL, MaxEventBytes: cfg.MaxEventBytes, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent,
	})
	s.reader, err2 = contactdocs.NewReader(container)
	s.audit, err3 = cosmos.NewAuditReader(container)
	return s, errors.Join(err1, err2, err3)
}

func (cosmosStore) open(p Params, cfg *config.Relay, u use) (operator.Store, error) {
	o := doctor.Options{Clock: &doctor.Clock{}, Account: &cosmos.Account{}, Contract: contract(cfg.Event)}
	policies := []policy.Policy{o.Clock, o.Account}
	if u.note != nil {
		policies = append(policies, cosmos.Answers(u.note))
	}
	var err error
	// Spans would make every poll of the feed a separate trace.
	if o.Client, err = p.cosmosClient(cfg.Cosmos, tracing.Provider{}, policies...); err != nil {
		return operator.Store{}, err
	}
	if !cfg.Cosmos.Key.IsSet() {
		if o.Identity, err = p.credential(); err != nil {
			return operator.Store{}, err
		}
	}
	store, err := cosmosrelay.NewStore(o.Client, &cosmosrelay.Options{
		Database: cfg.Cosmos.Database, Data: cfg.Cosmos.Container, Leases: cfg.Cosmos.Leases, Parked: cfg.Cosmos.Parked,
		Contract: o.Contract, AllVersions: cfg.Feed == config.FeedVersions, Account: o.Account,
	})
	return operator.Store{Store: store, Doctor: doctor.New(cfg.Cosmos, o), LeasesOf: func(entry string) (*changefeed.Operator, error) {
		names := append(strings.Split(entry, "/"), "", "")
		feed, err1 := cosmosfeed.NewFeed(o.Client, cfg.Cosmos.Database, names[0])
		leases, err2 := cosmosfeed.NewLeaseStore(o.Client, cfg.Cosmos.Database, names[1])
		return changefeed.NewOperator(feed, leases, &changefeed.OperatorOptions{Processor: cfg.Processor}), errors.Join(err1, err2)
	}}, err
}
