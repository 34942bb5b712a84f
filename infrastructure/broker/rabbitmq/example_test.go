package rabbitmq_test

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"

	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/consumer"
)

// A service handles the events of its group until it is stopped. Several processes may run it.
func ExampleNewConsumer() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: "amqp://billing:secret@localhost:5672/"})
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = client.Close() }()
	group := rabbitmq.Group{Name: "billing", Queues: 8}
	if err := rabbitmq.Declare(ctx, client, "orders", group); err != nil {
		log.Panic(err)
	}
	c, err := rabbitmq.NewConsumer(client, group, func(_ context.Context, e *consumer.Event) error {
		if !json.Valid(e.Body) {
			return consumer.DeadLetter("invalid_json", nil)
		}
		log.Print(e.Key, " ", e.Action)
		return nil
	}, &rabbitmq.ConsumerOptions{Options: consumer.Options{Concurrency: 16}})
	if err != nil {
		log.Panic(err)
	}
	_ = c.Run(ctx) // blocks until ctx ends and the handlers have returned
}

// The broker is passed to relayservice.New together with a store.
func ExampleNewRelayBroker() {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: "amqp://relay:secret@localhost:5672/"})
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = client.Close() }()
	if err := rabbitmq.Declare(context.Background(), client, "orders", rabbitmq.Group{Name: "billing"}); err != nil {
		log.Panic(err)
	}
	broker := rabbitmq.NewRelayBroker(client, "orders", &rabbitmq.PublisherOptions{Source: "/shop/orders"})
	_ = broker
}
