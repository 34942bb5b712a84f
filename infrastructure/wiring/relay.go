package wiring

import (
	"context"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/monitor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/relayservice"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/telemetry"
)

// Relay is the process that sends the events of the change feed to the topic.
func Relay(cfg *config.Relay, p Params) fx.Option {
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, monitor.OnCosmos, monitor.OnServiceBus), &cosmos.Account{}),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return p.telemetry(lc, "feedbox-relay", cfg.Instance)
			},
			func(account *cosmos.Account, needs monitor.Dependencies) (*azcosmos.Client, error) {
				return p.feedClient(cfg.Cosmos, account, needs[monitor.OnCosmos])
			},
			func(lc fx.Lifecycle) (*servicebus.Client, error) {
				client, err := p.serviceBusClient(cfg.ServiceBus)
				if err == nil {
					lc.Append(fx.StopHook(client.Close))
				}
				return client, err
			},
			newRelay,
		),
		fx.Invoke(runRelay),
	)
}

func newRelay(cfg *config.Relay, p Params, client *azcosmos.Client, bus *servicebus.Client, account *cosmos.Account, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) (*relayservice.Service, error) {
	return relayservice.New(client, bus, &relayservice.Options{
		Database:     cfg.Cosmos.Database,
		Data:         cfg.Cosmos.Container,
		Leases:       cfg.Cosmos.Leases,
		Parked:       cfg.Cosmos.Parked,
		Contract:     operator.Contract(cfg.Event),
		Topic:        cfg.ServiceBus.Topic,
		Topics:       cfg.ServiceBus.TopicsBySubject(),
		Source:       cfg.ServiceBus.Source,
		PackKeys:     cfg.ServiceBus.PackKeys,
		Processor:    cfg.Processor,
		Instance:     cfg.Instance,
		Start:        start(cfg.Start),
		Expiry:       cfg.Lease.Expiry,
		Renew:        cfg.Lease.Renew,
		Acquire:      cfg.Lease.Acquire,
		MaxItems:     cfg.MaxItems,
		PollMin:      cfg.PollMin,
		PollMax:      cfg.PollMax,
		DrainTimeout: cfg.DrainTimeout,
		WaitLimit:    config.WaitLimit,
		ParkedPoll:   p.DrainPoll,
		EventTTL:     cfg.EventTTL,
		Logger:       log,
		Meters:       t.Meters,
		Account:      account,
		Needs:        needs,
		WrapLeases:   withFailpoints,
	})
}

// start translates the configured start.
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

// runRelay verifies account and containers before the first lease is taken.
func runRelay(lc fx.Lifecycle, down fx.Shutdowner, p Params, relay *relayservice.Service, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger) {
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, Dependencies: needs.States, Ready: func(context.Context) error {
		return relay.Ready()
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(relay.Verify))
	background(lc, down, log, "relay", serviceFunc(relay.Relay))
	lc.Append(fx.StopHook(ops.Drain))
}
