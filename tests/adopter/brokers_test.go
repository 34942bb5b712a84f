package main

import (
	"context"
	"feedbox/infrastructure/broker/rabbitmq"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"example.com/orders/open"
)

// byServiceBus uses a topic of Service Bus.
type byServiceBus struct{ config servicebus.ClientConfig }

func (c byServiceBus) broker() (relayport.Broker, error) {
	bus, err := servicebus.NewClient(c.config)
	if err != nil {
		return relayport.Broker{}, err
	}
	return servicebus.NewRelayBroker(bus, &servicebus.RelayBrokerOptions{Topic: topic})
}

func (c byServiceBus) consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
	Run(ctx context.Context) error
}, error,
) {
	return subscriber.NewSessionProcessor(c.config, subscriber.Subscription(topic, open.Name), handler, &subscriber.SessionOptions{Inbox: inbox})
}

// byRabbitMQ uses an exchange of RabbitMQ.
type byRabbitMQ struct {
	url      string
	exchange string
}

func (c byRabbitMQ) group() rabbitmq.Group {
	return rabbitmq.Group{Name: c.exchange + "." + open.Name, Queues: 4}
}

func (c byRabbitMQ) broker() (relayport.Broker, error) {
	client, err := rabbitmq.NewClient(rabbitmq.Config{URL: c.url})
	return rabbitmq.NewRelayBroker(client, c.exchange, nil), err
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

// bySQS uses a FIFO queue of SQS.
type bySQS struct {
	client *awssqs.Client
	queue  string
}

func sqsClient(endpoint string) *awssqs.Client {
	return awssqs.New(awssqs.Options{BaseEndpoint: &endpoint, Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

func (c bySQS) broker() (relayport.Broker, error) {
	return sqs.NewRelayBroker(c.client, c.queue, ""), nil
}

func (c bySQS) consumer(handler consumer.Handler, inbox consumer.Inbox) (interface {
	Run(ctx context.Context) error
}, error,
) {
	return sqs.NewConsumer(c.client, c.queue, handler, &sqs.ConsumerOptions{Options: consumer.Options{Inbox: inbox, RetryDelay: 50 * time.Millisecond}, Visibility: 2 * time.Second})
}
