package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/wiring"
)

// queue is an SQS FIFO queue.
type queue struct{ at config.SQS }

// sqsBroker parses the URL of a queue. It contains the region, or the address of another
// server with the API of SQS.
func sqsBroker(u *url.URL) broker {
	if u.Host == "" || !strings.HasSuffix(u.Path, ".fifo") {
		return nil
	}
	q := &queue{config.SQS{QueueURL: config.Address(u.String())}}
	if parts := strings.Split(u.Host, "."); len(parts) > 3 && parts[0] == "sqs" && parts[2] == "amazonaws" {
		q.at.Region = parts[1]
		return q
	}
	q.at.Endpoint = config.Address(u.Scheme + "://" + u.Host)
	if cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")) == "" {
		q.at.Region = "us-east-1" // such a server accepts any region
	}
	return q
}

func (q *queue) variables(*endpoints) []string {
	return []string{
		"FEEDBOX_BROKER", config.BrokerSQS, "FEEDBOX_SQS_QUEUE_URL", string(q.at.QueueURL),
		"FEEDBOX_SQS_ENDPOINT", string(q.at.Endpoint), "FEEDBOX_SQS_REGION", q.at.Region,
	}
}

func (q *queue) rows(*endpoints) []string { return []string{"SQS", q.at.QueueURL.String()} }

func (*queue) copies() error {
	return errors.New("an SQS queue has one reader, which is the demo subscriber")
}

// subscriber creates the queue if it does not exist.
func (q *queue) subscriber(ctx context.Context, _ *endpoints, _ bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	client, err := wiring.SQSClient(q.at)
	if err != nil {
		return nil, fmt.Errorf("--broker: %w", err)
	}
	declared, err := sqs.Declare(ctx, client, path.Base(string(q.at.QueueURL)))
	if err != nil {
		return nil, fmt.Errorf("--broker: %w; does SQS answer there, and are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set?", err)
	}
	c, err := sqs.NewConsumer(client, declared, screen.event, &sqs.ConsumerOptions{
		Options: consumer.Options{Concurrency: 32, Logger: log.With("part", "subscriber"), Meters: t.Meters, Tracers: t.Exported()},
	})
	return &demoSubscriber{c, func() error { return nil }}, err
}

func (q *queue) empty(context.Context, *endpoints, string, time.Duration, func(messageRecord)) error {
	return q.copies()
}
