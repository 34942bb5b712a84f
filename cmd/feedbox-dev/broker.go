package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"
)

// broker takes the events. What differs between the kinds of broker stands in one file for each.
type broker interface {
	// variables point a process at the broker of e: names and values in turn.
	variables(e *endpoints) []string
	// rows are its lines of the banner: names and values in turn.
	rows(e *endpoints) []string
	// copies returns why there can be no copy of every message for dump; nil if there can.
	copies() error
	// subscriber makes what it takes to send events, with a copy of every message if record is
	// set, and returns a consumer that shows them.
	subscriber(ctx context.Context, e *endpoints, record bool, screen *printer, log *slog.Logger) (*demoSubscriber, error)
	// empty takes the messages off a subscription until none came for idle. Of each key the
	// order is kept. add is called from several goroutines.
	empty(ctx context.Context, e *endpoints, subscription string, idle time.Duration, add func(messageRecord)) error
}

// brokers make the broker that --broker names, by the scheme of its URL; nil for a URL that misses
// something.
var brokers = map[string]func(u *url.URL) broker{
	"":      emulatedBroker,
	"amqp":  rabbitBroker,
	"amqps": rabbitBroker,
	"http":  sqsBroker,
	"https": sqsBroker,
}

// parseBroker reads --broker; empty is the Service Bus emulator.
func parseBroker(text string) (broker, error) {
	u, err := url.Parse(text)
	var b broker
	if err == nil {
		if of := brokers[u.Scheme]; of != nil {
			b = of(u)
		}
	}
	if b == nil {
		return nil, errors.New("--broker: give the URL of RabbitMQ, amqp://user:password@host:port/vhost, or of a FIFO queue of SQS, https://sqs.eu-west-1.amazonaws.com/123456789012/contacts.fifo")
	}
	return b, nil
}
