package wiring

import (
	"context"
	"net"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/aws/aws-sdk-go-v2/feature/rds/auth"
	"github.com/jackc/pgx/v5"
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

func (p Params) openPostgres(cfg config.Postgres, used func(err error)) (*postgres.DB, error) {
	password, err := p.postgresPassword(cfg)
	if err != nil {
		return nil, err
	}
	return postgres.Open(cfg.URL.Reveal(), &postgres.DBOptions{Schema: cfg.Schema, Used: used, Password: password})
}

// postgresPassword returns the source of passwords in cfg; nil for that of the URL.
func (p Params) postgresPassword(cfg config.Postgres) (func(ctx context.Context, c *pgx.ConnConfig) (string, error), error) {
	switch {
	case cfg.PasswordFile != "" || cfg.PasswordCommand != "":
		return func(ctx context.Context, _ *pgx.ConnConfig) (string, error) { return cfg.Password(ctx) }, nil
	case cfg.Identity == "entra":
		identity, err := p.credential()
		return func(ctx context.Context, _ *pgx.ConnConfig) (string, error) {
			token, err := identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://ossrdbms-aad.database.windows.net/.default"}})
			return token.Token, err
		}, err
	case cfg.Identity == "aws":
		found, err := awsConfig("", "")
		return func(ctx context.Context, c *pgx.ConnConfig) (string, error) {
			return auth.BuildAuthToken(ctx, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), found.Region, c.User, found.Credentials)
		}, err
	}
	return nil, nil
}

// MigratePostgres creates the schema or migrates it, and returns its version.
func MigratePostgres(ctx context.Context, cfg config.Postgres) (version int, err error) {
	db, err := Params{}.openPostgres(cfg, nil)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if err := db.Migrate(ctx); err != nil {
		return 0, err
	}
	if err := db.Verify(ctx); err != nil {
		return 0, err
	}
	state, err := db.State(ctx)
	return state.Schema, err
}

// PostgresRoles returns the SQL script for the roles of the processes.
func PostgresRoles(cfg config.Postgres) string { return postgres.Roles(cfg.Schema) }

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

func (postgresStore) api(lc fx.Lifecycle, p Params, cfg *config.API, m *mediator.Mediator, _ *telemetry.Telemetry, need *monitor.Dependency) (*contactStore, error) {
	db, err := p.openPostgres(cfg.Postgres, need.Note)
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(db.Close))
	return contactsIn(postgres.Records{DB: db}, cfg, m, prepare(db, cfg.Postgres))
}

func (postgresStore) open(p Params, cfg *config.Relay, u use) (operator.Store, error) {
	db, err := p.openPostgres(cfg.Postgres, u.note)
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
