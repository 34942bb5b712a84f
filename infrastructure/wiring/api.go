package wiring

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/fx"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	contactsapi "feedbox/infrastructure/httpapi/contacts"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
)

// API returns the process that serves contacts.
func API(cfg *config.API, p Params) fx.Option {
	store := stores[cfg.Store.Kind]
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, store.name())),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return p.telemetry(lc, "feedbox-api", "")
			},
			mediator.New,
			func(lc fx.Lifecycle, m *mediator.Mediator, t *telemetry.Telemetry, needs monitor.Dependencies) (*contactStore, error) {
				return store.api(lc, p, cfg, m, t, needs[store.name()])
			},
			func(m *mediator.Mediator, s *contactStore, t *telemetry.Telemetry) (*httpapi.Server, error) {
				if err := register(cfg, m, s); err != nil {
					return nil, err
				}
				return newAPIServer(cfg, m, t, p)
			},
		),
		fx.Invoke(runAPI),
	)
}

// register registers the handlers of all commands, queries and events with the mediator.
func register(cfg *config.API, m *mediator.Mediator, s *contactStore) error {
	contacts.SubscribeEvents(m)
	if err := contacts.RegisterCommands(m, contacts.CommandPorts{Work: s.work, IDs: uuid.New, Now: time.Now, Audit: cfg.Audit}); err != nil {
		return err
	}
	ports := contacts.QueryPorts{Contacts: s.reader}
	if cfg.Audit {
		ports.Audit = s.audit
	}
	return contacts.RegisterQueries(m, ports)
}

func newAPIServer(cfg *config.API, m *mediator.Mediator, t *telemetry.Telemetry, p Params) (*httpapi.Server, error) {
	who, err := authenticator(cfg.Auth, cfg.APIKeys, nil)
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
		PublicURL:           string(cfg.PublicURL),
		AllowedHosts:        allowedHosts(cfg.AllowedHosts, cfg.Listen, cfg.Auth.Insecure),
		Audit:               cfg.Audit,
		Home:                p.Home,

		MaxConnectionsPerAddress: cfg.PerAddress,
	})
}

// authenticator returns the configured authenticator; listed holds its API keys. Nil admits
// all callers, which the configuration allows only on loopback addresses.
func authenticator(cfg config.Auth, listed config.APIKeys, entra *auth.EntraOptions) (auth.Authenticator, error) {
	switch cfg.Mode {
	case "apikey":
		var keys []auth.APIKey
		for _, k := range listed.List() {
			keys = append(keys, auth.APIKey{Principal: k.Principal, Write: k.Write, Audit: k.Audit, Hash: k.Hash})
		}
		return auth.NewAPIKeys(keys)
	case "entra":
		return auth.NewEntra(string(cfg.Issuer), cfg.Audiences, entra)
	default:
		return nil, nil
	}
}

// runAPI verifies the store before it accepts requests, and then reports ready. Later
// outages of the store do not change the readiness, because a 503 with Retry-After from the
// process serves clients better than no process in rotation.
//
// A shutdown ends the readiness first, the listener after cfg.DrainDelay, and the probes
// last.
func runAPI(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.API, store *contactStore, p Params,
	server *httpapi.Server, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger,
) error {
	if err := needs.Register(t.Meters); err != nil {
		return err
	}
	var ready atomic.Bool
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.OpsListen, false), Dependencies: dependencies(needs), Ready: func(context.Context) error {
		if !ready.Load() {
			return errors.New("the store has not answered yet")
		}
		return nil
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(store.verify))
	background(lc, down, log, "api", serveOn(server.Run, p.API))
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
