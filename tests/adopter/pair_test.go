package main

import (
	"context"
	"encoding/json"
	"errors"
	"feedbox/application/command"
	outbox "feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/postgresinbox"
	"feedbox/infrastructure/document"
	"feedbox/infrastructure/postgres"
	"feedbox/infrastructure/rabbitmq"
	"feedbox/infrastructure/relayservice"
	"feedbox/infrastructure/relayservice/azure"
	"feedbox/infrastructure/rows"
	"feedbox/infrastructure/rows/parked"
	"feedbox/infrastructure/servicebus"
	"feedbox/infrastructure/servicebus/subscriber"
	"feedbox/infrastructure/sqs"
	"feedbox/infrastructure/verify"
	"log/slog"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/orders/open"
	"example.com/orders/order"
	"example.com/orders/store"
)

// keeper is a store of orders and totals: what an adopter writes for a store of theirs.
type keeper interface {
	orders() (*store.Orders, error)
	events() (relayservice.Store, error)
	totals(ctx context.Context) (consumer.Inbox, counter, error)
	// total and stored are for tests.
	total(ctx context.Context, id string) (open.Total, error)
	stored(ctx context.Context) ([]verify.Aggregate, []verify.Event, error)
}

// counter is open.Totals.Count.
type counter = func(ctx context.Context, e *consumer.Event, change func(t *open.Total)) error

// carrier is a broker: what an adopter writes for a broker of theirs.
type carrier interface {
	broker() (relayservice.Broker, error)
	consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
		Run(ctx context.Context) error
	}, error)
}

// runOn runs a part of the service on a pair.
func runOn(ctx context.Context, part string, k keeper, c carrier) error {
	switch part {
	case "serve":
		orders, err := k.orders()
		if err != nil {
			return err
		}
		return listen(ctx, orders)
	case "relay":
		expiry, _ := time.ParseDuration(os.Getenv("ORDERS_LEASE_EXPIRY")) // none: the default
		events, err := k.events()
		broker, wrong := c.broker()
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		service, err := relayservice.New(events, broker, &relayservice.Options{Expiry: expiry, PollMax: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return service.Run(ctx)
	default:
		inbox, count, err := k.totals(ctx)
		if err != nil {
			return err
		}
		handler, err := open.Handler(count)
		processor, wrong := c.consumer(logged(handler), inbox)
		if err := errors.Join(err, wrong); err != nil {
			return err
		}
		return processor.Run(ctx)
	}
}

// inCosmos keeps orders in containers.
type inCosmos struct{ client *azcosmos.Client }

func (k inCosmos) container(name string) *azcosmos.ContainerClient {
	c, _ := k.client.NewContainer(database, name) // the names are good
	return c
}

func (k inCosmos) orders() (*store.Orders, error) { return store.Open(k.container("data")) }

func (k inCosmos) events() (relayservice.Store, error) {
	return azure.Store(k.client, &azure.StoreOptions{Database: database})
}

func (k inCosmos) totals(context.Context) (consumer.Inbox, counter, error) {
	t, err := open.New(k.container("totals"))
	return t, t.Count, err
}

func (k inCosmos) total(ctx context.Context, id string) (t open.Total, err error) {
	reply, err := k.container("totals").ReadItem(ctx, azcosmos.NewPartitionKeyString(id), open.Name+"-total", nil)
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(reply.Value, &t)
}

func (k inCosmos) stored(ctx context.Context) (aggregates []verify.Aggregate, events []verify.Event, err error) {
	for pager := k.container("data").NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, raw := range page.Items {
			d, err := verify.DecodeDocument(raw)
			switch {
			case err != nil:
				return nil, nil, err
			case d.Kind == verify.KindAggregate:
				aggregates = append(aggregates, d.Aggregate())
			case d.Kind == verify.KindEvent:
				events = append(events, d.Event())
			}
		}
	}
	return aggregates, events, nil
}

// inPostgres keeps orders in a database.
type inPostgres struct {
	db   *postgres.DB
	pool *pgxpool.Pool // of the consumer, whose database it could be as well
}

func openPostgres(ctx context.Context, url string) (inPostgres, error) {
	db, err := postgres.Open(url, nil)
	pool, wrong := pgxpool.New(ctx, url)
	return inPostgres{db, pool}, errors.Join(err, wrong)
}

// create makes the tables, of an empty database.
func (k inPostgres) create(ctx context.Context) error {
	_, err := k.pool.Exec(ctx, `CREATE TABLE totals (id text PRIMARY KEY, open boolean NOT NULL, pieces bigint NOT NULL, events bigint NOT NULL)`)
	return errors.Join(err, k.db.Migrate(ctx))
}

func (k inPostgres) orders() (*store.Orders, error) {
	table := postgres.Rows{DB: k.db}
	work, err := rows.NewUnitsOfWork(table, store.Kind.Kind(), nil, nil)
	reader, wrong := rows.NewJSONReader[order.State](table, store.Type)
	namespace := uuid.MustParse("2f6f0c57-5a0e-4f0e-9c64-0d6f0f1f7a52")
	ports := command.Ports[*order.Order]{Work: work, IDs: uuid.New, Now: time.Now, Noun: store.Type, Namespace: namespace}
	return &store.Orders{Ports: ports, Reader: reader}, errors.Join(err, wrong)
}

func (k inPostgres) events() (relayservice.Store, error) {
	feed, err := postgres.NewFeed(k.db, &postgres.FeedOptions{Hold: 250 * time.Millisecond})
	decoder, wrong := document.NewEventDecoder(document.EventContract{})
	return relayservice.Store{
		Name: "postgres", Feed: feed, Decoder: decoder, Events: rows.Events{Store: postgres.Rows{DB: k.db}, Decoder: decoder}, Leases: postgres.Leases{DB: k.db}, Parked: parked.Lot{Store: postgres.Parked{DB: k.db}},
		Verify: k.db.Verify, Upkeep: postgres.Upkeep{DB: k.db, Log: slog.New(slog.DiscardHandler), Held: feed.Held}.Run, Held: feed.Held,
	}, errors.Join(err, wrong)
}

func (k inPostgres) totals(ctx context.Context) (consumer.Inbox, counter, error) {
	inbox, err := postgresinbox.New(k.pool, open.Name, nil)
	if err == nil {
		err = inbox.Create(ctx)
	}
	return inbox, func(ctx context.Context, e *consumer.Event, change func(t *open.Total)) error {
		return inbox.Do(ctx, e, func(ctx context.Context, tx pgx.Tx) error {
			t, err := readTotal(ctx, tx, e.Key)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			change(&t)
			t.Events++
			_, err = tx.Exec(ctx, `INSERT INTO totals VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET open = EXCLUDED.open, pieces = EXCLUDED.pieces, events = EXCLUDED.events`,
				e.Key, t.Open, t.Pieces, t.Events)
			return err
		})
	}, err
}

func readTotal(ctx context.Context, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id string,
) (t open.Total, err error) {
	return t, q.QueryRow(ctx, `SELECT open, pieces, events FROM totals WHERE id = $1`, id).Scan(&t.Open, &t.Pieces, &t.Events)
}

func (k inPostgres) total(ctx context.Context, id string) (open.Total, error) {
	return readTotal(ctx, k.pool, id)
}

func (k inPostgres) stored(ctx context.Context) (aggregates []verify.Aggregate, events []verify.Event, err error) {
	found, _ := k.pool.Query(ctx, `SELECT id::text, version, sequence FROM feedbox.aggregates`)
	if aggregates, err = pgx.CollectRows(found, pgx.RowToStructByPos[verify.Aggregate]); err != nil {
		return nil, nil, err
	}
	found, _ = k.pool.Query(ctx, `SELECT document FROM feedbox.events`)
	events, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (verify.Event, error) {
		var raw string
		if err := row.Scan(&raw); err != nil {
			return verify.Event{}, err
		}
		d, err := verify.DecodeDocument([]byte(raw))
		return d.Event(), err
	})
	return aggregates, events, err
}

// byServiceBus sends to a topic.
type byServiceBus struct{ config servicebus.ClientConfig }

func (c byServiceBus) broker() (relayservice.Broker, error) {
	bus, err := servicebus.NewClient(c.config)
	if err != nil {
		return relayservice.Broker{}, err
	}
	return azure.Broker(bus, &azure.BrokerOptions{Topic: topic})
}

func (c byServiceBus) consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
	Run(ctx context.Context) error
}, error,
) {
	return subscriber.NewSessionProcessor(c.config, subscriber.Subscription(topic, open.Name), handler, &subscriber.SessionOptions{Inbox: inbox})
}

// byRabbitMQ sends to an exchange.
type byRabbitMQ struct {
	url      string
	exchange string
}

func (c byRabbitMQ) group() rabbitmq.Group {
	return rabbitmq.Group{Name: c.exchange + "." + open.Name, Queues: 4}
}

func (c byRabbitMQ) broker() (relayservice.Broker, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: c.url})
	return relayservice.Broker{
		Name: "rabbitMQ", System: "rabbitmq", Destination: c.exchange,
		Open: func(_ *slog.Logger, sent func(context.Context, outbox.BatchReport)) (relayservice.Publisher, error) {
			return rabbitmq.NewPublisher(client, c.exchange, &rabbitmq.PublisherOptions{Sent: sent})
		},
	}, err
}

func (c byRabbitMQ) consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
	Run(ctx context.Context) error
}, error,
) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: c.url})
	if err != nil {
		return nil, err
	}
	return rabbitmq.NewConsumer(client, c.group(), handler, &rabbitmq.ConsumerOptions{Options: consumer.Options{Inbox: inbox, RetryDelay: 50 * time.Millisecond}})
}

// bySQS sends to a FIFO queue.
type bySQS struct {
	client *awssqs.Client
	queue  string
}

func sqsClient(endpoint string) *awssqs.Client {
	return awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

func (c bySQS) broker() (relayservice.Broker, error) {
	return relayservice.Broker{
		Name: "sqs", System: "aws_sqs", Destination: c.queue,
		Open: func(_ *slog.Logger, sent func(context.Context, outbox.BatchReport)) (relayservice.Publisher, error) {
			return sqs.NewPublisher(c.client, c.queue, &sqs.PublisherOptions{Sent: sent})
		},
	}, nil
}

func (c bySQS) consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
	Run(ctx context.Context) error
}, error,
) {
	return sqs.NewConsumer(c.client, c.queue, handler, &sqs.ConsumerOptions{Options: consumer.Options{Inbox: inbox, RetryDelay: 50 * time.Millisecond}, Visibility: 2 * time.Second})
}
