package main

import (
	"context"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	wsql "github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/components/forwarder"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

const outbox = "outbox"

func fillWatermill(ctx context.Context, pool *pgxpool.Pool, events []event) error {
	if _, err := pool.Exec(ctx, `DROP TABLE IF EXISTS watermill_outbox, watermill_offsets_outbox`); err != nil {
		return err
	}
	inner, err := wsql.NewPublisher(wsql.BeginnerFromPgx(pool), wsql.PublisherConfig{SchemaAdapter: wsql.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	to := forwarder.NewPublisher(inner, forwarder.PublisherConfig{ForwarderTopic: outbox})
	for _, e := range events {
		m := message.NewMessage(e.ID, []byte(e.Data))
		m.Metadata = message.Metadata{"partitionKey": e.Key, "sequence": strconv.FormatInt(e.Sequence, 10), "action": e.Action}
		if err := to.Publish(e.Queue, m); err != nil {
			return err
		}
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

// ready leaves the creation of exchange and queues to the benchmark.
type ready struct{}

// BuildTopology implements the topology builder of Watermill.
func (ready) BuildTopology(*amqp.Channel, wamqp.BuildTopologyParams, wamqp.Config, watermill.LoggerAdapter) error {
	return nil
}

// ExchangeDeclare implements the topology builder of Watermill.
func (ready) ExchangeDeclare(*amqp.Channel, string, wamqp.Config) error { return nil }

func relayWatermill(ctx context.Context, pool *pgxpool.Pool, p place) error {
	from, err := wsql.NewSubscriber(wsql.BeginnerFromPgx(pool), wsql.SubscriberConfig{
		SchemaAdapter: wsql.DefaultPostgreSQLSchema{SubscribeBatchSize: 1000}, OffsetsAdapter: wsql.DefaultPostgreSQLOffsetsAdapter{},
		InitializeSchema: true, PollInterval: 10 * time.Millisecond,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	to, err := wamqp.NewPublisher(wamqp.Config{
		Connection: wamqp.ConnectionConfig{AmqpURI: p.broker},
		Marshaler: wamqp.DefaultMarshaler{PostprocessPublishing: func(m amqp.Publishing) amqp.Publishing {
			m.MessageId, _ = m.Headers[wamqp.DefaultMessageUUIDHeaderKey].(string)
			return m
		}},
		Exchange:        wamqp.ExchangeConfig{GenerateName: func(string) string { return p.exchange }, Type: amqp.ExchangeDirect, Durable: true},
		Publish:         wamqp.PublishConfig{GenerateRoutingKey: func(topic string) string { return topic }, Mandatory: true, ConfirmDelivery: true, ChannelPoolSize: 4},
		TopologyBuilder: ready{},
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	f, err := forwarder.NewForwarder(from, to, watermill.NopLogger{}, forwarder.Config{ForwarderTopic: outbox})
	if err != nil {
		return err
	}
	return f.Run(ctx)
}
