package sqs_test

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"

	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
)

// A service handles the events of a queue until it is stopped. Several processes may run it.
func ExampleNewConsumer() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Panic(err)
	}
	client := awssqs.NewFromConfig(cfg)
	queueURL, err := sqs.Declare(ctx, client, "billing.fifo")
	if err != nil {
		log.Panic(err)
	}
	c, err := sqs.NewConsumer(client, queueURL, func(_ context.Context, e *consumer.Event) error {
		if !json.Valid(e.Body) {
			return consumer.DeadLetter("invalid_json", nil)
		}
		log.Print(e.Key, " ", e.Action)
		return nil
	}, &sqs.ConsumerOptions{Options: consumer.Options{Concurrency: 16}})
	if err != nil {
		log.Panic(err)
	}
	_ = c.Run(ctx) // blocks until ctx ends and the handlers have returned
}

// The broker is passed to relayservice.New together with a store.
func ExampleNewRelayBroker() {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		log.Panic(err)
	}
	broker := sqs.NewRelayBroker(awssqs.NewFromConfig(cfg), "https://sqs.eu-west-1.amazonaws.com/1234/billing.fifo", "/shop/orders")
	_ = broker
}
