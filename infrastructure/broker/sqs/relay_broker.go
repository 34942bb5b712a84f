package sqs

import (
	"context"
	"log/slog"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/application/relay"
	"feedbox/infrastructure/relay/relayport"
)

// The names of Amazon SQS and SNS in metrics of dependencies and in probes.
const (
	BrokerName      = "sqs"
	TopicBrokerName = "sns"
)

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

// NewTopicRelayBroker returns the broker of a relay that publishes to a FIFO topic. Source is the
// CloudEvents source; "" means the default of PublisherOptions. It does no I/O.
func NewTopicRelayBroker(client *sns.Client, topicARN, source string) relayport.Broker {
	return relayport.Broker{
		Name: TopicBrokerName, System: "aws.sns", Destination: topicARN[strings.LastIndexByte(topicARN, ':')+1:],
		Open: func(_ *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayport.Publisher, error) {
			return NewTopicPublisher(client, topicARN, &PublisherOptions{Source: source, Sent: sent})
		},
	}
}
