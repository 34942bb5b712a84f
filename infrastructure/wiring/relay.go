package wiring

import (
	"context"
	"log/slog"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"go.uber.org/fx"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/telemetry"
)

// Relay is the process that sends the events of the change feed to the topic.
func Relay(cfg *config.Relay, s Surroundings) fx.Option {
	return fx.Options(
		process(s.Log, cfg.DrainTimeout),
		fx.Supply(cfg, s.Sockets),
		fx.Provide(
			func(lc fx.Lifecycle) (*telemetry.Telemetry, error) {
				return s.telemetry(lc, "feedbox-relay", cfg.Instance)
			},
			// No spans of the SDK here: every poll of the feed would be a trace of its own.
			func(account *cosmos.Account) (*azcosmos.Client, error) {
				return s.cosmosClient(cfg.Cosmos, tracing.Provider{}, append(feedPolicies(), account)...)
			},
			func() *cosmos.Account { return &cosmos.Account{} },
			func(lc fx.Lifecycle) (*azservicebus.Client, error) { return s.serviceBusClient(lc, cfg.ServiceBus) },
			func(t *telemetry.Telemetry) (*relayMetrics, error) {
				return newRelayMetrics(t.Meters, cfg.ServiceBus.Topic)
			},
			func() *health { return newHealth(time.Now) },
			newPublisher,
			newParkedLot,
			newRelay,
			func(publisher *servicebus.Publisher, lot *cosmos.ParkedLot, log *slog.Logger) (*relay.Drainer, error) {
				return newDrainer(cfg, s.DrainPoll, publisher, lot, log)
			},
			newProcessor,
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

// feedPolicies let the client read feeds better; see cosmosfeed.ClientOptions.
func feedPolicies() []policy.Policy { return cosmosfeed.ClientOptions(nil).PerCallPolicies }

func newPublisher(lc fx.Lifecycle, cfg *config.Relay, client *azservicebus.Client, m *relayMetrics, log *slog.Logger) (*servicebus.Publisher, error) {
	p, err := servicebus.NewPublisher(client, cfg.ServiceBus.Topic, &servicebus.PublisherOptions{
		PackKeys: cfg.ServiceBus.PackKeys, Sent: m.batch, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(p.Close))
	return p, nil
}

func newParkedLot(cfg *config.Relay, client *azcosmos.Client) (*cosmos.ParkedLot, error) {
	container, err := client.NewContainer(cfg.Cosmos.Database, cfg.Cosmos.Parked)
	if err != nil {
		return nil, err
	}
	return cosmos.NewParkedLot(container)
}

func newRelay(publisher *servicebus.Publisher, lot *cosmos.ParkedLot, m *relayMetrics, log *slog.Logger) (*relay.Relay, error) {
	return relay.New(cosmos.EventDecoder{}, publisher, &relay.Options{
		Lot: lot, Now: time.Now, Hooks: m.hooks(relayLog(log), time.Now),
	})
}

// newDrainer returns what sends or skips parked events when an operator asks for it.
func newDrainer(cfg *config.Relay, poll time.Duration, publisher *servicebus.Publisher, lot *cosmos.ParkedLot, log *slog.Logger) (*relay.Drainer, error) {
	return relay.NewDrainer(lot, cosmos.EventDecoder{}, publisher, relay.DrainOptions{
		Owner: cfg.Instance, Token: uuid.NewString(), Now: time.Now, Poll: poll, Drained: drainLog(log),
	})
}

func newProcessor(cfg *config.Relay, client *azcosmos.Client, r *relay.Relay, m *relayMetrics, up *health, log *slog.Logger) (*changefeed.Processor, error) {
	feed, err := cosmosfeed.NewFeed(client, cfg.Cosmos.Database, cfg.Cosmos.Container, nil)
	if err != nil {
		return nil, err
	}
	leases, err := cosmosfeed.NewLeaseStore(client, cfg.Cosmos.Database, cfg.Cosmos.Leases)
	if err != nil {
		return nil, err
	}
	h := &relayHandler{relay: r}
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
		DeadLetter:   h.park,
		Observer:     up.observe(m.observe(h.observe(reportAbsence(cfg.EventTTL, time.Now, log, processorLog(log))))),
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
func runRelay(lc fx.Lifecycle, down fx.Shutdowner, cfg *config.Relay, client *azcosmos.Client, account *cosmos.Account, sockets Sockets,
	processor *changefeed.Processor, drainer *relay.Drainer, up *health, t *telemetry.Telemetry, log *slog.Logger,
) error {
	check := func(ctx context.Context) error {
		return verify(ctx, ProcessRelay, cfg.Cosmos, client, account)
	}
	up.lag = processor.Lag
	if err := observeLag(t.Meters, processor.Lag); err != nil {
		return err
	}
	ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, Ready: up.ready})
	if sockets.Ops != nil {
		background(lc, down, log, "ops", serveOn{ops.Run, sockets.Ops})
	}
	lc.Append(fx.Hook{OnStart: check})
	background(lc, down, log, "retention guard", retentionGuard{judge: relay.Retention{TTL: cfg.EventTTL}, every: heartbeat, lag: processor.Lag, log: log})
	background(lc, down, log, "drainer", drainer)
	background(lc, down, log, "processor", processor)
	lc.Append(fx.StopHook(ops.Drain))
	return nil
}
