package rabbitmq

import (
	"context"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/infrastructure/relay/relayport"
)

// BrokerName identifies RabbitMQ in metrics of dependencies and in probes.
const BrokerName = "rabbitMQ"

// NewRelayBroker returns the broker of a relay that publishes to a durable direct exchange. Source is
// the app id of messages; "" means the default of PublisherOptions. It does no I/O.
func NewRelayBroker(client *Client, exchange, source string) relayport.Broker {
	return relayport.Broker{
		Name: BrokerName, System: "rabbitmq", Destination: exchange,
		Open: func(log *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return NewPublisher(client, exchange, &PublisherOptions{Source: source, Sent: sent, Logger: log})
		},
	}
}
