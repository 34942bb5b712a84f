package wiring

import (
	"context"

	"go.uber.org/fx"

	"feedbox/application/mediator"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/postgres/doctor"
)

// postgresStore is PostgreSQL.
type postgresStore struct{}

func (postgresStore) name() string { return postgres.StoreName }

func openPostgres(cfg config.Postgres, used func(err error)) (*postgres.DB, error) {
	return postgres.Open(cfg.URL.Reveal(), &postgres.DBOptions{Schema: cfg.Schema, Used: used})
}

// prepare returns a function that migrates the schema if configured, and verifies it.
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
	db, err := openPostgres(cfg.Postgres, need.Note)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(db.Close))
	return contactsIn(postgres.Records{DB: db}, cfg, m, prepare(db, cfg.Postgres))
}

func (postgresStore) open(p Params, cfg *config.Relay, u use) (operator.Store, error) {
	db, err := openPostgres(cfg.Postgres, u.note)
	if err != nil {
		return operator.Store{}, err
	}
	options := &postgres.RelayStoreOptions{Contract: contract(cfg.Event), Ranges: cfg.Postgres.Ranges, Log: p.Log}
	if !u.poll {
		options.Hold = -1
	}
	store, err := postgres.NewRelayStore(db, options)
	store.Verify = prepare(db, cfg.Postgres)
	return operator.Store{Store: store, Doctor: doctor.Doctor{DB: db}, Close: db.Close}, err
}
