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

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

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

func (*queue) consumer(*endpoints) string { return "" }

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
		return nil, fmt.Errorf("--broker: %w%s", err, inAWS)
	}
	return demoConsumer(client, declared, screen, log, t)
}

const inAWS = "; does AWS answer there, and are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY set?"

func demoConsumer(client *awssqs.Client, queueURL string, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	c, err := sqs.NewConsumer(client, queueURL, screen.event, &sqs.ConsumerOptions{
		Options: consumer.Options{Concurrency: 32, Logger: log.With("part", "subscriber"), Meters: t.Meters, Tracers: t.Exported()},
	})
	return &demoSubscriber{c, func() error { return nil }}, err
}

func (q *queue) empty(context.Context, *endpoints, string, time.Duration, func(messageRecord)) error {
	return q.copies()
}

// fifoTopic is an SNS FIFO topic with one queue, for the demo subscriber. Another server with the API of
// AWS is that of AWS_ENDPOINT_URL, which the SDK reads.
type fifoTopic struct{ at config.SNS }

func snsBroker(u *url.URL) broker {
	b := fifoTopic{config.SNS{TopicARN: u.String()}}
	if b.at.Region() == "" || !strings.HasSuffix(b.at.TopicARN, ".fifo") {
		return nil
	}
	return b
}

func (b fifoTopic) variables(*endpoints) []string {
	return []string{"FEEDBOX_BROKER", config.BrokerSNS, "FEEDBOX_SNS_TOPIC_ARN", b.at.TopicARN, "FEEDBOX_SNS_ENDPOINT", ""}
}

func (fifoTopic) consumer(*endpoints) string { return "" } // SNS lists its queues

func (b fifoTopic) rows(*endpoints) []string { return []string{"SNS", b.at.TopicARN} }

func (fifoTopic) copies() error {
	return errors.New("the queue of the SNS topic has one reader, which is the demo subscriber")
}

// subscriber creates the topic and its queue if they do not exist.
func (b fifoTopic) subscriber(ctx context.Context, _ *endpoints, _ bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	topics, queues, err := wiring.SNSClients(b.at)
	if err != nil {
		return nil, fmt.Errorf("--broker: %w", err)
	}
	name := b.at.TopicARN[strings.LastIndex(b.at.TopicARN, ":")+1:]
	declared, urls, err := sqs.DeclareTopic(ctx, topics, queues, name, strings.TrimSuffix(name, ".fifo")+"-"+subscription+".fifo")
	if err == nil && declared != b.at.TopicARN {
		err = fmt.Errorf("the topic of these credentials is %s", declared)
	}
	if err != nil {
		return nil, fmt.Errorf("--broker: %w%s", err, inAWS)
	}
	return demoConsumer(queues, urls[0], screen, log, t)
}

func (b fifoTopic) empty(context.Context, *endpoints, string, time.Duration, func(messageRecord)) error {
	return b.copies()
}
