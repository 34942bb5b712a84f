package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/fx"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/push"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/store/cosmos"
)

// source receives events or documents and passes them to a sender until ctx ends.
type source func(ctx context.Context) error

// Push returns the process that sends the events of a subscription or queue to an HTTP endpoint.
func Push(cfg *config.Push, p Params) fx.Option {
	o := push.Options{Attempts: cfg.Attempts, Policies: policies(cfg.ByAction)}
	return p.pushing("feedbox-push", cfg.Process, cfg.Receiver, o, func(lc fx.Lifecycle, s *push.Sender, t *telemetry.Telemetry, log *slog.Logger) (source, error) {
		park, err := p.pushParked(lc, cfg)
		if err != nil {
			return nil, err
		}
		shared := consumer.Options{
			Concurrency: cfg.Keys, Attempts: unlimited, Policies: s.Treatments(), Park: park, ParkedPoll: cfg.ParkedPoll, DrainTimeout: cfg.DrainTimeout, Logger: log, Meters: t.Meters, Tracers: t.Exported(),
		}
		switch cfg.Broker.Kind {
		case config.BrokerRabbitMQ:
			return p.pushGroup(lc, cfg, s, shared)
		case config.BrokerServiceBus:
			return p.pushSubscription(cfg, s, shared)
		default:
			return pushQueue(cfg, s, shared)
		}
	})
}

// policies returns those of the configuration in the form of the kits.
func policies(given map[string]config.Policy) map[string]consumer.Policy {
	all := make(map[string]consumer.Policy, len(given))
	for action, p := range given {
		one := consumer.Policy{
			Timeout: p.Timeout, Attempts: p.Attempts, RetryDelay: p.Backoff, RetryDelayMax: p.BackoffMax,
			Refused: map[string]consumer.Treatment{"dead-letter": consumer.DeadLetterOnly, "drop": consumer.Drop}[p.Then],
		}
		if p.Refused != nil {
			one.IsRefused = func(err error) bool { return slices.Contains(p.Refused, push.Status(err)) }
		}
		all[action] = one
	}
	return all
}

// pushParked opens the parked events of cfg.Park; nil without a name.
func (p Params) pushParked(lc fx.Lifecycle, cfg *config.Push) (consumer.ParkedStore, error) {
	if cfg.Park == "" {
		return nil, nil //nolint:nilnil // parking is off
	}
	store, err := stores[cfg.Store.Kind].open(p, &config.Relay{Store: cfg.Store, Cosmos: cfg.Cosmos, Postgres: cfg.Postgres, Firestore: cfg.Firestore}, use{})
	if store.Close != nil {
		lc.Append(fx.StopHook(store.Close))
	}
	if err != nil {
		return nil, err
	}
	return store.ParkedOf(cfg.Park)
}

func (p Params) pushSubscription(cfg *config.Push, s *push.Sender, shared consumer.Options) (source, error) {
	namespace, err := p.serviceBusNamespace(cfg.ServiceBus)
	if err != nil {
		return nil, err
	}
	topic, name, ok := strings.Cut(cfg.From, "/")
	if !ok {
		topic, name = cfg.ServiceBus.Topic, cfg.From
	}
	c, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(topic, name), s.Handle, &subscriber.SessionOptions{
		Sessions: cfg.Keys, Policies: shared.Policies, Park: shared.Park, ParkedPoll: shared.ParkedPoll, DrainTimeout: shared.DrainTimeout, Logger: shared.Logger, Meters: shared.Meters, Tracers: shared.Tracers,
	})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func (p Params) pushGroup(lc fx.Lifecycle, cfg *config.Push, s *push.Sender, shared consumer.Options) (source, error) {
	group, err := rabbitmq.ParseGroup(cfg.From)
	if err != nil {
		return nil, err
	}
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: cfg.RabbitMQ.URL.Reveal(), Name: cfg.Instance, Logger: shared.Logger})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(client.Close))
	c, err := rabbitmq.NewConsumer(client, group, s.Handle, &rabbitmq.ConsumerOptions{Options: shared})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func pushQueue(cfg *config.Push, s *push.Sender, shared consumer.Options) (source, error) {
	region, endpoint := cfg.SQS.Region, cfg.SQS.Endpoint
	if cfg.Broker.Kind == config.BrokerSNS {
		region, endpoint = cfg.SNS.Region(), cfg.SNS.Endpoint
	}
	found, err := awsConfig(region, endpoint)
	if err != nil {
		return nil, err
	}
	c, err := sqs.NewConsumer(awssqs.NewFromConfig(found), cfg.From, s.Handle, &sqs.ConsumerOptions{Options: shared, MaxInFlight: max(200, 2*cfg.Keys)})
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

// unlimited leaves the number of attempts to the sender, which does not count those of an outage.
const unlimited = -1

// Feed returns the process that sends the documents of a container to an HTTP endpoint.
func Feed(cfg *config.Feed, p Params) fx.Option {
	address := strings.TrimSuffix(string(cfg.Cosmos.Endpoint), "/") + "/dbs/" + cfg.Cosmos.Database + "/colls/" + cfg.Cosmos.Container
	return p.pushing("feedbox-feed", cfg.Process, cfg.Receiver, push.Options{Source: address}, func(lc fx.Lifecycle, s *push.Sender, _ *telemetry.Telemetry, log *slog.Logger) (source, error) {
		client, err := p.cosmosClient(cfg.Cosmos, tracing.Provider{})
		if err != nil {
			return nil, err
		}
		feed, err := cosmosfeed.NewFeed(client, cfg.Cosmos.Database, cfg.Cosmos.Container)
		if err != nil {
			return nil, err
		}
		leases, err := cosmosfeed.NewLeaseStore(client, cfg.Cosmos.Database, cfg.Cosmos.Leases)
		if err != nil {
			return nil, err
		}
		lc.Append(fx.StartHook(func(ctx context.Context) error {
			return cosmos.VerifyNames(ctx, client, cfg.Cosmos.Database, cfg.Cosmos.Container, cfg.Cosmos.Leases)
		}))
		skips := cfg.Refused == "skip"
		o := &changefeed.Options{
			Processor: cfg.Processor, Purpose: "feed", Host: cfg.Instance, Start: start(cfg.Start), Expiry: cfg.Lease.Expiry, Renew: cfg.Lease.Renew, Acquire: cfg.Lease.Acquire,
			PollMin: 100 * time.Millisecond, PollMax: 5 * time.Second, Lanes: 16, RetryMax: cfg.Receiver.RetryMax, DrainTimeout: cfg.DrainTimeout, Logger: log,
		}
		if skips {
			o.MaxAttempts, o.Poison = 1, changefeed.PoisonSkip
		}
		c, err := changefeed.New(feed, leases, documents(s, push.DocumentOptions{Type: cfg.Type, Batch: cfg.Batch}, !skips), o)
		if err != nil {
			return nil, err
		}
		return c.Run, nil
	})
}

var (
	idOf   = changefeed.Field("id")
	etagOf = changefeed.Field("_etag")
)

// documents returns a handler that sends the documents of a change feed. A held document waits in the
// processor, which continues with other keys and bounds the memory. With hold a refused document is
// retried, so that its key waits; otherwise it counts as refused for changefeed.Options.Poison.
func documents(s *push.Sender, o push.DocumentOptions, hold bool) changefeed.Handler {
	return changefeed.HandlerFunc(func(ctx context.Context, batch *changefeed.Batch) error {
		all := make([]push.Document, len(batch.Items))
		for i := range batch.Items {
			item := &batch.Items[i]
			all[i] = push.Document{ID: idOf(item.Raw), Version: etagOf(item.Raw), Key: item.Key, LSN: item.LSN, Time: item.Time(), Raw: item.Raw}
		}
		o := o
		o.Failures = batch.Attempt - 1
		s.Documents(ctx, all, o, func(i int, err error) {
			if refused, ok := errors.AsType[*consumer.DeadLetterError](err); ok {
				err = cmp.Or(refused.Err, err) // without the text of a dead letter, because no document becomes one
				if !hold {
					err = changefeed.Refuse(err)
				}
			}
			if until, ok := push.Paused(err); ok {
				err = changefeed.WaitUntil(until, err)
			}
			batch.Answer(i, err)
		})
		return nil
	})
}

// pushing returns a process that sends to a receiver what open's source receives. After a signal, held
// events return to their source, so that the stop does not wait for the receiver.
func (p Params) pushing(name string, cfg config.Process, to config.Receiver, o push.Options, open func(fx.Lifecycle, *push.Sender, *telemetry.Telemetry, *slog.Logger) (source, error)) fx.Option {
	return fx.Options(
		process(p.Log, cfg.DrainTimeout),
		fx.Provide(func(lc fx.Lifecycle) (*telemetry.Telemetry, error) { return p.telemetry(lc, name, cfg.Instance) }),
		fx.Invoke(func(lc fx.Lifecycle, down fx.Shutdowner, t *telemetry.Telemetry, log *slog.Logger) error {
			s, err := p.sender(to, o)
			if err != nil {
				return err
			}
			run, err := open(lc, s, t, log)
			if err != nil {
				return err
			}
			ops := httpapi.NewOps(&httpapi.OpsOptions{Metrics: t.Metrics, AllowedHosts: allowedHosts(cfg.AllowedHosts, cfg.OpsListen, false)})
			runOps(lc, down, log, ops, p.Sockets)
			background(lc, down, log, name, func(ctx context.Context) error {
				defer context.AfterFunc(ctx, s.Stop)()
				return run(ctx)
			})
			lc.Append(fx.StopHook(ops.Drain))
			return nil
		}),
	)
}

func (p Params) sender(to config.Receiver, o push.Options) (*push.Sender, error) {
	var err error
	if o.Secrets, err = push.ParseSecrets(to.Secret.Reveal()); err != nil {
		return nil, fmt.Errorf("FEEDBOX_PUSH_SECRET: %w", err)
	}
	if to.Scope != "" {
		credential, err := p.credential()
		if err != nil {
			return nil, err
		}
		o.Authorize = func(ctx context.Context) (string, error) { // the credential caches the token
			token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{to.Scope}})
			return "Bearer " + token.Token, err
		}
	}
	if to.Source != "" {
		o.Source = to.Source
	}
	o.To, o.Mode, o.Refused, o.Requests, o.Timeout, o.RetryDelayMax, o.Logger = string(to.To), push.Mode(to.Mode), to.Refused, to.Requests, to.Timeout, to.RetryMax, p.Log
	return push.New(o)
}
