package servicebus

import (
	"context"
	"errors"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/infrastructure/relay/relayport"
)

// BrokerName identifies Service Bus in metrics of dependencies and in probes.
const BrokerName = "serviceBus"

// RelayBrokerOptions name the destination of events. Topic is required.
type RelayBrokerOptions struct {
	// Topic receives the events. It must have duplicate detection, and its subscriptions must have
	// sessions.
	Topic string
	// Topics contains the topics of events that are not sent to Topic, by action.
	Topics map[string]string
	// Source is the CloudEvents source. Default: "/" and the topic.
	Source string
	// PackKeys puts events of several keys into one batch, which is much faster. A topic with
	// partitions refuses such batches, and then gets one batch per key.
	PackKeys bool
}

// NewRelayBroker returns the broker of a relay. It does no I/O.
func NewRelayBroker(client *Client, o *RelayBrokerOptions) (relayport.Broker, error) {
	if client == nil || o == nil || o.Topic == "" {
		return relayport.Broker{}, errors.New("servicebus: the client and Topic are required")
	}
	given := *o
	return relayport.Broker{
		Name: BrokerName, System: "servicebus", Destination: given.Topic,
		Open: func(log *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return NewTopics(client, given.Topic, given.Topics, &PublisherOptions{
				PackKeys: given.PackKeys, Source: given.Source, Logger: log, Sent: sent,
			})
		},
	}, nil
}
