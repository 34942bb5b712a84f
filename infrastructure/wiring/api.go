package wiring

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
	"go.uber.org/fx"

	"feedbox/application/command"
	"feedbox/application/event"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/telemetry"
)

// API is the process that serves contacts.
func API(cfg *config.API, s Surroundings) fx.Option {
	return fx.Options(
		process(s.Log, cfg.DrainTimeout),
		fx.Supply(cfg, s.Sockets),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return s.telemetry(lc, "feedbox-api", "")
			},
			func() *cosmos.Account { return &cosmos.Account{} },
			func(t *telemetry.Telemetry, account *cosmos.Account) (*azcosmos.Client, error) {
				return s.cosmosClient(cfg.Cosmos, t.AzureTracing(), account)
			},
			newContacts,
			newAPIServer,
		),
		fx.Invoke(runAPI),
	)
}

// newContacts builds the application over the data container: a mediator that
// answers every command and query and stores every event.
func newContacts(cfg *config.API, client *azcosmos.Client) (*mediator.Mediator, error) {
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container)
	if err != nil {
		return nil, err
	}
	m := mediator.New()
	event.Subscribe(m)
	work, err := cosmos.NewUnitsOfWork(container, m, &cosmos.Options{EventTTL: cfg.EventTTL, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent})
	if err != nil {
		return nil, err
	}
	if err := command.Register(m, command.Ports{Work: work, IDs: uuid.New, Now: time.Now, Audit: cfg.Audit}); err != nil {
		return nil, err
	}
	reader, err := cosmos.NewContactReader(container)
	if err != nil {
		return nil, err
	}
	ports := query.Ports{Contacts: reader}
	if cfg.Audit {
		ports.Audit = reader
	}
	if err := query.Register(m, ports); err != nil {
		return nil, err
	}
	return m, nil
}

func newAPIServer(cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, log *slog.Logger) (*httpapi.Server, error) {
	who, err := authenticator(cfg.Auth)
	if err != nil {
		return nil, err
	}
	rate := cfg.RateLimit
	if rate == 0 {
		rate = -1 // no limit
	}
	return httpapi.New(m, &httpapi.Options{
		Logger:              log,
		Meters:              t.Meters,
		Tracers:             t.Tracers,
		RequestTimeout:      cfg.RequestTimeout,
		DrainTimeout:        cfg.DrainTimeout,
		Auth:                who,
		RateLimit:           rate,
		RateBurst:           cfg.RateBurst,
		MaxInFlight:         cfg.MaxInFlight,
		RequirePrecondition: cfg.RequirePrecondition,
		TokenKeys:           cfg.TokenKeys.List(),
		PublicURL:           cfg.PublicURL,
		Audit:               cfg.Audit,
	})
}

// authenticator returns what finds out who calls; nil lets everybody in, which the
// configuration allows on loopback addresses only.
func authenticator(cfg config.Auth) (auth.Authenticator, error) {
	switch cfg.Mode {
	case "apikey":
		var keys []auth.APIKey
		for _, k := range cfg.APIKeys.List() {
			keys = append(keys, auth.APIKey{Principal: k.Principal, Write: k.Write, Hash: k.Hash})
		}
		return auth.NewAPIKeys(keys)
	case "entra":
		return auth.NewEntra(cfg.Issuer, cfg.Audiences, nil)
	default:
		return nil, nil
	}
}

// runAPI verifies account and containers before the first request is taken.
func runAPI(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.API, client *azcosmos.Client, account *cosmos.Account, sockets Sockets,
	server *httpapi.Server, t *telemetry.Telemetry, log *slog.Logger,
) {
	check := func(ctx context.Context) error {
		return verify(ctx, ProcessAPI, cfg.Cosmos, client, account)
	}
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics})
	if sockets.Ops != nil {
		background(lc, down, log, "ops", serveOn{ops.Run, sockets.Ops})
	}
	lc.Append(fx.Hook{OnStart: check})
	background(lc, down, log, "api", serveOn{server.Run, sockets.API})
	lc.Append(fx.StopHook(ops.Drain))
}

// serveOn is a service that serves one listener.
type serveOn struct {
	run func(ctx context.Context, l net.Listener) error
	l   net.Listener
}

func (s serveOn) Run(ctx context.Context) error { return s.run(ctx, s.l) }
