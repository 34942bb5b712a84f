package rabbitmq

import (
	"cmp"
	"context"
	"log/slog"

	"feedbox/application/relay"
	"feedbox/infrastructure/relay/relayport"
)

// BrokerName identifies RabbitMQ in metrics of dependencies and in probes.
const BrokerName = "rabbitMQ"

// NewRelayBroker returns the broker of a relay that publishes to a durable direct exchange. opts may be nil;
// Sent and Logger are those of the relay. It does no I/O.
func NewRelayBroker(client *Client, exchange string, opts *PublisherOptions) relayport.Broker {
	return relayport.Broker{
		Name: BrokerName, System: "rabbitmq", Destination: exchange,
		Open: func(log *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			o := *cmp.Or(opts, &PublisherOptions{})
			o.Sent, o.Logger = sent, log
			return NewPublisher(client, exchange, &o)
		},
	}
}
