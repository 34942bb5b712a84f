package main

import (
	"context"
	outbox "feedbox/application/relay"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayservice"
	"feedbox/infrastructure/relay/relayservice/azure"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"example.com/orders/open"
)

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
