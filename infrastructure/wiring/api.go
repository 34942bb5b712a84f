package wiring

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/google/uuid"
	"go.uber.org/fx"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	contactdocs "feedbox/infrastructure/cosmos/contacts"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	contactsapi "feedbox/infrastructure/httpapi/contacts"
	"feedbox/infrastructure/monitor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/telemetry"
)

// API is the process that serves contacts.
func API(cfg *config.API, p Params) fx.Option {
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, monitor.OnCosmos), &cosmos.Account{}),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return p.telemetry(lc, "feedbox-api", "")
			},
			func(t *telemetry.Telemetry, account *cosmos.Account, needs monitor.Dependencies) (*azcosmos.Client, error) {
				return p.cosmosClient(cfg.Cosmos, t.AzureTracing(), account, needs[monitor.OnCosmos])
			},
			newContacts,
			func(m *mediator.Mediator, t *telemetry.Telemetry) (*httpapi.Server, error) {
				return newAPIServer(cfg, m, t, p)
			},
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
	contacts.SubscribeEvents(m)
	work, err := cosmos.NewUnitsOfWork(container, contactdocs.Kind(), m, &cosmos.Options{EventTTL: cfg.EventTTL, DeletedTTL: cfg.DeletedTTL, AuditTTL: cfg.AuditTTL, RequestTTL: cfg.IdempotencyTTL, Traceparent: traceparent})
	if err != nil {
		return nil, err
	}
	if err := contacts.RegisterCommands(m, contacts.CommandPorts{Work: work, IDs: uuid.New, Now: time.Now, Audit: cfg.Audit}); err != nil {
		return nil, err
	}
	reader, err := contactdocs.NewReader(container)
	if err != nil {
		return nil, err
	}
	ports := contacts.QueryPorts{Contacts: reader}
	if cfg.Audit {
		if ports.Audit, err = cosmos.NewAuditReader(container); err != nil {
			return nil, err
		}
	}
	if err := contacts.RegisterQueries(m, ports); err != nil {
		return nil, err
	}
	return m, nil
}

func newAPIServer(cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, p Params) (*httpapi.Server, error) {
	who, err := authenticator(cfg.Auth)
	if err != nil {
		return nil, err
	}
	rate := cfg.RateLimit
	if rate == 0 {
		rate = -1 // no limit
	}
	return httpapi.New([]httpapi.Resource{contactsapi.Resource(m)}, &httpapi.Options{
		Logger:              p.Log,
		Meters:              t.Meters,
		Tracers:             t.Tracers,
		RequestTimeout:      cfg.RequestTimeout,
		DrainTimeout:        cfg.DrainTimeout - cfg.DrainDelay,
		Auth:                who,
		RateLimit:           rate,
		RateBurst:           cfg.RateBurst,
		MaxInFlight:         cfg.MaxInFlight,
		MaxConnections:      cfg.MaxConnections,
		RequirePrecondition: cfg.RequirePrecondition,
		TokenKeys:           cfg.TokenKeys.List(),
		PublicURL:           cfg.PublicURL,
		Audit:               cfg.Audit,
		Home:                p.Home,
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

// runAPI verifies account and containers before the first request is taken. The
// process is ready once they are and requests are; later outages of the store do not
// take it out of rotation, since clients are better served by its own 503 with
// Retry-After.
//
// A stop begins with the readiness, goes on after cfg.DrainDelay with the listener,
// and ends with the probes.
func runAPI(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.API, client *azcosmos.Client, account *cosmos.Account, p Params,
	server *httpapi.Server, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger,
) error {
	if err := needs.Register(t.Meters); err != nil {
		return err
	}
	var ready atomic.Bool
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, Dependencies: needs.States, Ready: func(context.Context) error {
		if !ready.Load() {
			return errors.New("the store has not answered yet")
		}
		return nil
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(func(ctx context.Context) error { return verify(ctx, operator.ProcessAPI, cfg.Cosmos, client, account) }))
	background(lc, down, log, "api", serveOn{server.Run, p.API})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { ready.Store(true); return nil },
		OnStop: func(ctx context.Context) error {
			ops.Drain()
			select {
			case <-time.After(cfg.DrainDelay):
			case <-ctx.Done():
			}
			return nil
		},
	})
	return nil
}
