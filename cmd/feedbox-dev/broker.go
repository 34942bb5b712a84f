package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/subscriber"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/process/telemetry"
)

// broker is the destination of the events. Each kind has its own file.
type broker interface {
	// variables returns the FEEDBOX_ variables of the broker: alternating names and values.
	variables(e *endpoints) []string
	// consumer returns the demo subscriber's name in FEEDBOX_CONSUMERS, "" if operators need no name.
	consumer(e *endpoints) string
	// rows returns the lines of the banner: alternating names and values.
	rows(e *endpoints) []string
	// copies returns an error if the broker cannot keep a copy of every message for dump.
	copies() error
	// subscriber creates the entities of the broker, with a copy of every message if record
	// is set, and returns a consumer that prints the messages.
	subscriber(ctx context.Context, e *endpoints, record bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error)
	// empty receives the messages of a subscription until none arrived for idle, in order per
	// key. It calls add from several goroutines.
	empty(ctx context.Context, e *endpoints, subscription string, idle time.Duration, add func(messageRecord)) error
}

// brokers has a constructor for each URL scheme of --broker. It returns nil for an
// incomplete URL.
var brokers = map[string]func(u *url.URL) broker{
	"":      emulatedBroker,
	"amqp":  rabbitBroker,
	"amqps": rabbitBroker,
	"http":  sqsBroker,
	"https": sqsBroker,
	"arn":   snsBroker,
}

// parseBroker parses --broker; empty is the Service Bus emulator.
func parseBroker(text string) (broker, error) {
	u, err := url.Parse(text)
	var b broker
	if err == nil {
		if of := brokers[u.Scheme]; of != nil {
			b = of(u)
		}
	}
	if b == nil {
		return nil, errors.New("--broker: give the URL of RabbitMQ, amqp://user:password@host:port/vhost, or of an SQS FIFO queue, https://sqs.eu-west-1.amazonaws.com/123456789012/contacts.fifo, or the ARN of an SNS FIFO topic, arn:aws:sns:eu-west-1:123456789012:contacts.fifo")
	}
	return b, nil
}

// emulatedBus is the Service Bus emulator.
type emulatedBus struct{}

func emulatedBroker(u *url.URL) broker {
	if u.String() != "" {
		return nil
	}
	return emulatedBus{}
}

// variables returns no address, because the emulator runs with any broker and its variables
// are in endpoints.variables.
func (emulatedBus) variables(*endpoints) []string {
	return []string{"FEEDBOX_BROKER", config.BrokerServiceBus}
}

func (emulatedBus) consumer(e *endpoints) string { return e.Topic + "/" + e.Subscription }

func (emulatedBus) rows(e *endpoints) []string {
	return []string{"Service Bus emulator", brokerOf(e.ServiceBusConnectionString), "Service Bus admin", e.ServiceBusAdmin}
}

func (emulatedBus) copies() error { return nil }

func (emulatedBus) subscriber(_ context.Context, e *endpoints, _ bool, screen *printer, log *slog.Logger, t *telemetry.Telemetry) (*demoSubscriber, error) {
	namespace := servicebus.ClientConfig{ConnectionString: e.ServiceBusConnectionString}
	p, err := subscriber.NewSessionProcessor(namespace, subscriber.Subscription(e.Topic, e.Subscription), screen.event, &subscriber.SessionOptions{
		Sessions: 32, Logger: log.With("part", "subscriber"), Meters: t.Meters, Tracers: t.Exported(),
	})
	return &demoSubscriber{p, func() error { return nil }}, err
}
