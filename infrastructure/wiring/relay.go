package wiring

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.uber.org/fx"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/cosmos/parked"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/monitor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/relayfeed"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/telemetry"
)

// Relay is the process that sends the events of the change feed to the topic.
func Relay(cfg *config.Relay, p Params) fx.Option {
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Supply(cfg, p, monitor.NewDependencies(time.Now, monitor.OnCosmos, monitor.OnServiceBus), &cosmos.Account{}, monitor.NewHealth(time.Now)),
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
			func(t *telemetry.Telemetry) (*monitor.Metrics, error) {
				return monitor.NewMetrics(t.Meters, cfg.ServiceBus.Topic)
			},
			newPublisher,
			newParkedLot,
			newRelay,
			newProcessor,
			newDrainer,
		),
		fx.Invoke(runRelay),
	)
}

// heartbeat is how often the relay reports its lag in the log.
const heartbeat = 30 * time.Second

// lanes is how many keys of one feed range are sent at a time, page by page; keys
// of one page are sent together by the publisher anyway.
const lanes = 4

// pollBusy is the shortest pause between two reads of a range whose changes come
// faster than the configured PollMin. Reads are then about as many as changes, and a
// read that finds nothing costs a tenth of the write that it waited for, or less.
const pollBusy = time.Millisecond

// retryMax is the longest pause between two tries of a key that waits.
const retryMax = 5 * time.Second

func newPublisher(lc fx.Lifecycle, cfg *config.Relay, client *servicebus.Client, m *monitor.Metrics, needs monitor.Dependencies, log *slog.Logger) (*servicebus.Publisher, error) {
	publisher, err := servicebus.NewPublisher(client, cfg.ServiceBus.Topic, &servicebus.PublisherOptions{
		PackKeys: cfg.ServiceBus.PackKeys, Logger: log,
		Sent: func(ctx context.Context, r servicebus.BatchReport) {
			m.Batch(ctx, r)
			needs[monitor.OnServiceBus].Batch(r)
		},
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(publisher.Close))
	return publisher, nil
}

func newParkedLot(cfg *config.Relay, client *azcosmos.Client) (*parked.Lot, error) {
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Parked)
	if err != nil {
		return nil, err
	}
	return parked.New(container)
}

func newRelay(publisher *servicebus.Publisher, lot *parked.Lot, m *monitor.Metrics, log *slog.Logger) (*relay.Relay, error) {
	return relay.New(cosmos.EventDecoder{}, m.Timed(publisher, time.Now), &relay.Options{
		Parked: lot, Now: time.Now, Observer: m.Hooks(monitor.RelayLog(log), time.Now),
	})
}

func newProcessor(cfg *config.Relay, client *azcosmos.Client, r *relay.Relay, m *monitor.Metrics, health *monitor.Health, log *slog.Logger) (*changefeed.Processor, error) {
	feed, err := cosmosfeed.NewFeed(client, cfg.Cosmos.Database, cfg.Cosmos.Container)
	if err != nil {
		return nil, err
	}
	leases, err := cosmosfeed.NewLeaseStore(client, cfg.Cosmos.Database, cfg.Cosmos.Leases)
	if err != nil {
		return nil, err
	}
	h := relayfeed.NewHandler(r)
	return changefeed.New(feed, withFailpoints(leases), h, &changefeed.Options{
		Processor:    cfg.Processor,
		Host:         cfg.Instance,
		Start:        start(cfg.Start),
		Expiry:       cfg.Lease.Expiry,
		Renew:        cfg.Lease.Renew,
		Acquire:      cfg.Lease.Acquire,
		MaxItems:     cfg.MaxItems,
		PollMin:      cfg.PollMin,
		PollBusy:     min(cfg.PollMin, pollBusy),
		PollMax:      cfg.PollMax,
		DrainTimeout: cfg.DrainTimeout,
		Lanes:        lanes,
		Poison:       changefeed.PoisonDeadLetter,
		RetryMax:     retryMax,
		DeadLetter:   h.Park,
		WaitLimit:    config.WaitLimit,
		Observer: changefeed.JoinObservers(h.Observe(), health.Observer(), m.Observer(),
			monitor.AbsenceLog(cfg.EventTTL, time.Now, log), monitor.ProcessorLog(log)),
	})
}

func newDrainer(p Params, cfg *config.Relay, client *azcosmos.Client, processor *changefeed.Processor, publisher *servicebus.Publisher, lot *parked.Lot, log *slog.Logger) (*relay.Drainer, error) {
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Container)
	if err != nil {
		return nil, err
	}
	events, err := cosmos.NewEventStore(container)
	if err != nil {
		return nil, err
	}
	return relay.NewDrainer(lot, relayfeed.Ranges{Processor: processor}, cosmos.EventDecoder{}, publisher, relay.DrainOptions{
		Now: time.Now, Poll: p.DrainPoll, Stored: events, Drained: monitor.DrainLog(log), LookFailed: monitor.DrainLookLog(log),
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
func runRelay(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.Relay, client *azcosmos.Client, account *cosmos.Account, p Params,
	processor *changefeed.Processor, drainer *relay.Drainer, lot *parked.Lot, health *monitor.Health, needs monitor.Dependencies, t *telemetry.Telemetry, log *slog.Logger,
) error {
	lag := &monitor.LagGauge{Lag: processor.Lag, Failing: needs[monitor.OnCosmos].Failing, Now: time.Now}
	gauge := &monitor.ParkedGauge{Lot: lot, Every: heartbeat, Log: log}
	if err := errors.Join(lag.Register(t.Meters), gauge.Register(t.Meters), needs.Register(t.Meters)); err != nil {
		return err
	}
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, Dependencies: needs.States, Ready: func(context.Context) error {
		return health.Ready(processor.Lag)
	}})
	runOps(lc, down, log, ops, p.Sockets)
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		return verify(ctx, operator.ProcessRelay, cfg.Cosmos, client, account)
	}))
	background(lc, down, log, "retention report", monitor.Retention{TTL: cfg.EventTTL, Every: heartbeat, Lag: processor.Lag, Log: log})
	background(lc, down, log, "parked gauge", gauge)
	background(lc, down, log, "drainer", drainer)
	background(lc, down, log, "processor", processor)
	lc.Append(fx.StopHook(ops.Drain))
	return nil
}
