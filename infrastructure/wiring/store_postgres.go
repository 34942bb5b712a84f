package wiring

import (
	"context"
	"errors"
	"time"

	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/infrastructure/operator"
	postgresoperator "feedbox/infrastructure/operator/postgres"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
)

// postgresStore is PostgreSQL.
type postgresStore struct{}

func (postgresStore) name() string { return "postgres" }

// openPostgres opens a database that is closed at the stop.
func openPostgres(lc fx.Lifecycle, cfg config.Postgres, need *monitor.Dependency) (*postgres.DB, error) {
	db, err := postgres.Open(cfg.URL.Reveal(), &postgres.DBOptions{Schema: cfg.Schema, Used: need.Note})
	if err == nil {
		lc.Append(fx.StopHook(db.Close))
	}
	return db, err
}

// prepare brings the schema to the version of the program, if it may, and verifies.
func prepare(db *postgres.DB, cfg config.Postgres) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if cfg.Migrate {
			if err := db.Migrate(ctx); err != nil {
				return err
			}
		}
		return db.Verify(ctx)
	}
}

func (postgresStore) api(lc fx.Lifecycle, _ Params, cfg *config.API, m *mediator.Mediator, _ *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	db, err := openPostgres(lc, cfg.Postgres, need)
	if err != nil {
		return nil, err
	}
	return contactsIn(postgres.Rows{DB: db}, cfg, m, prepare(db, cfg.Postgres))
}

// feedHold is how long a read of the feed waits for an event: less than what a stop takes.
const feedHold = 250 * time.Millisecond

// feedPage is how many events a read of the feed asks for: a round trip and a descent of the
// index are paid for once, and more keys are on their way to the broker at a time.
const feedPage = 1000

func (s postgresStore) relay(lc fx.Lifecycle, p Params, cfg *config.Relay, need *monitor.Dependency) (relayservice.Store, error) {
	db, err := openPostgres(lc, cfg.Postgres, need)
	if err != nil {
		return relayservice.Store{}, err
	}
	feed, err1 := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: cfg.Postgres.Ranges, Hold: feedHold})
	decoder, err2 := document.NewEventDecoder(contract(cfg.Event))
	if err := errors.Join(err1, err2); err != nil {
		return relayservice.Store{}, err
	}
	return relayservice.Store{
		Name: s.name(), Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: postgres.Rows{DB: db}, Decoder: decoder},
		Leases: postgres.Leases{DB: db}, Parked: parked.Lot{Store: postgres.Parked{DB: db}}, Verify: prepare(db, cfg.Postgres),
		Upkeep: postgres.Upkeep{DB: db, Log: p.Log, Held: feed.Held}.Run, Held: feed.Held, MaxItems: feedPage, Waits: true,
	}, nil
}

func (postgresStore) operator(_ Params, cfg *config.Relay) (operator.Store, error) {
	db, err := postgres.Open(cfg.Postgres.URL.Reveal(), &postgres.DBOptions{Schema: cfg.Postgres.Schema})
	if err != nil {
		return operator.Store{}, err
	}
	feed, err1 := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: cfg.Postgres.Ranges})
	decoder, err2 := document.NewEventDecoder(contract(cfg.Event))
	return operator.Store{
		Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: postgres.Rows{DB: db}, Decoder: decoder}, Leases: postgres.Leases{DB: db}, Parked: parked.Lot{Store: postgres.Parked{DB: db}},
		Doctor: postgresoperator.Doctor{DB: db}, Close: db.Close,
	}, errors.Join(err1, err2)
}
