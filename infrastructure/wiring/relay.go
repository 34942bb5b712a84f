package wiring

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/relay/relayservice"
)

// Relay returns the process that sends the events of the change feed to the broker.
func Relay(cfg *config.Relay, p Params) fx.Option {
	store, broker := stores[cfg.Store.Kind], brokers[cfg.Broker.Kind]
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, store.name(), broker.name())),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return p.telemetry(lc, "feedbox-relay", cfg.Instance)
			},
			func(lc fx.Lifecycle, needs monitor.Dependencies) (relayport.Store, error) {
				s, err := store.open(p, cfg, use{note: needs[store.name()].Note, poll: true})
				if s.Close != nil {
					lc.Append(fx.StopHook(s.Close))
				}
				return s.Store, err
			},
			func(lc fx.Lifecycle) (relayport.Broker, error) {
				b, err := broker.open(p, cfg, cfg.Instance)
				if b.Close != nil {
					lc.Append(fx.StopHook(b.Close))
				}
				return b.Broker, err
			},
			newRelay,
		),
		fx.Invoke(runRelay),
	)
}

func newRelay(cfg *config.Relay, store relayport.Store, broker relayport.Broker, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) (*relayservice.Service, error) {
	return relayservice.New(store, broker, &relayservice.Options{
		Processor:    cfg.Processor,
		Instance:     cfg.Instance,
		Start:        start(cfg.Start),
		Expiry:       cfg.Lease.Expiry,
		Renew:        cfg.Lease.Renew,
		Acquire:      cfg.Lease.Acquire,
		MaxItems:     cfg.MaxItems,
		PollBusy:     cfg.PollBusy,
		PollMin:      cfg.PollMin,
		PollMax:      cfg.PollMax,
		DrainTimeout: cfg.DrainTimeout,
		WaitLimit:    config.WaitLimit,
		ParkedPoll:   cfg.ParkedPoll,
		EventTTL:     cfg.EventTTL,
		Logger:       log,
		Meters:       t.Meters,
		Tracers:      t.Exported(),
		Needs:        needs,
		WrapLeases:   withFailpoints,
		Observer:     failpoints(),
	})
}

// start converts the configured start.
func start(s config.Start) changefeed.Start {
	switch {
	case s.Now:
		return changefeed.FromNow()
	case !s.Time.IsZero():
		return changefeed.FromTime(s.Time)
	default:
		return changefeed.FromBeginning()
	}
}

// runRelay verifies the store before the relay acquires its first lease.
func runRelay(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.Relay, p Params, relay *relayservice.Service, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) {
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.OpsListen, false), Dependencies: dependencies(needs), Ready: func(context.Context) error {
		return relay.Ready()
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(relay.Verify))
	background(lc, down, log, "relay", relay.Relay)
	lc.Append(fx.StopHook(ops.Drain))
}
