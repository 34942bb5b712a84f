package azure

import (
	"context"
	"errors"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/relay/relayservice"
)

// BrokerName is that of Service Bus in metrics of dependencies and in probes.
const BrokerName = "serviceBus"

// BrokerOptions say where events go. Topic is required.
type BrokerOptions struct {
	// Topic receives the events.
	Topic string
	// Topics are the exceptions from Topic, by the subject of an event.
	Topics map[string]string
	// Source is the CloudEvents attribute of that name. Default: "/" and the topic.
	Source string
	// PackKeys puts events of several keys into one batch: much faster, for topics without
	// partitions.
	PackKeys bool
}

// Broker returns the broker of a relay.
func Broker(client *servicebus.Client, o *BrokerOptions) (relayservice.Broker, error) {
	if client == nil || o == nil || o.Topic == "" {
		return relayservice.Broker{}, errors.New("azure: the client of Service Bus and Topic are required")
	}
	given := *o
	return relayservice.Broker{
		Name: BrokerName, System: "servicebus", Destination: given.Topic,
		Open: func(log *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayservice.Publisher, error) {
			return servicebus.NewTopics(client, given.Topic, given.Topics, &servicebus.PublisherOptions{
				PackKeys: given.PackKeys, Source: given.Source, Logger: log, Sent: sent,
			})
		},
	}, nil
}
