package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/rabbitmq"
)

// rabbitGroup is what a subscription of the Service Bus emulator is on RabbitMQ.
func rabbitGroup(e *endpoints, subscription string) rabbitmq.Group {
	return rabbitmq.Group{Name: e.Topic + "." + subscription, Queues: 4}
}

// newRabbitSubscriber declares what the relay sends to, and returns a consumer of it.
func newRabbitSubscriber(ctx context.Context, e endpoints, record bool, screen *printer, log *slog.Logger) (*demoSubscriber, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: e.RabbitMQURL, Name: "feedbox-dev"})
	if err != nil {
		return nil, usageError{fmt.Errorf("--broker: %w", err)}
	}
	groups := []rabbitmq.Group{rabbitGroup(&e, e.Subscription)}
	if record {
		groups = append(groups, rabbitGroup(&e, recording))
	}
	if err := rabbitmq.Declare(ctx, client, e.Topic, groups...); err != nil {
		return nil, errors.Join(fmt.Errorf("--broker: %w; is RabbitMQ running there?", err), client.Close())
	}
	c, err := rabbitmq.NewConsumer(client, groups[0], screen.event, &rabbitmq.ConsumerOptions{
		Options: consumer.Options{Concurrency: 32, Logger: log.With("part", "subscriber")},
	})
	return &demoSubscriber{c, client.Close}, err
}

// dumpRabbitMQ empties the queues of a group into a file and returns the count. Of each key the
// order is kept.
func dumpRabbitMQ(ctx context.Context, e *endpoints, subscription string, idle time.Duration, path string) (n int, err error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: e.RabbitMQURL, Name: "feedbox-dev dump"})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	file, err := createRecords(path)
	if err != nil {
		return 0, err
	}
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	var number atomic.Int64
	quiet := time.AfterFunc(max(10*time.Second, idle), stop) // the first event may take longer than the next ones
	handle := func(_ context.Context, m *consumer.Event) error {
		quiet.Reset(idle)
		file.add(messageRecord{ID: m.ID, Session: m.Key, Subject: m.Action, Version: m.AggregateVersion, Sequence: m.Sequence, Number: number.Add(1)})
		return nil
	}
	c, err := rabbitmq.NewConsumer(client, rabbitGroup(e, subscription), handle, nil)
	if err == nil {
		err = c.Run(receiving)
	}
	return file.count, errors.Join(err, ctx.Err(), file.close())
}
