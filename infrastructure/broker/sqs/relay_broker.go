package sqs

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/application/relay"
	"feedbox/infrastructure/relay/relayport"
)

// BrokerName identifies Amazon SQS in metrics of dependencies and in probes.
const BrokerName = "sqs"

// NewRelayBroker returns the broker of a relay that publishes to a FIFO queue. Source is the CloudEvents
// source; "" means the default of PublisherOptions. It does no I/O.
func NewRelayBroker(client *sqs.Client, queueURL, source string) relayport.Broker {
	return relayport.Broker{
		Name: BrokerName, System: "aws_sqs", Destination: queueName(queueURL),
		Open: func(_ *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return NewPublisher(client, queueURL, &PublisherOptions{Source: source, Sent: sent})
		},
	}
}
