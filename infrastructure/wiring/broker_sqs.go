package wiring

import (
	"context"
	"fmt"
	"log/slog"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/fx"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/operator/fifo"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/relay/relayservice"
)

// sqsBroker is a FIFO queue of Amazon SQS.
type sqsBroker struct{}

func (sqsBroker) name() string { return "sqs" }

func (b sqsBroker) relay(_ fx.Lifecycle, _ Params, cfg *config.Relay) (relayservice.Broker, error) {
	client, err := SQSClient(cfg.SQS)
	if err != nil {
		return relayservice.Broker{}, err
	}
	return relayservice.Broker{
		Name: b.name(), System: "aws_sqs", Destination: cfg.SQS.QueueURL,
		Open: func(_ *slog.Logger, sent func(context.Context, relay.BatchReport)) (relayservice.Publisher, error) {
			return sqs.NewPublisher(client, cfg.SQS.QueueURL, &sqs.PublisherOptions{Source: cfg.SQS.Source, Sent: sent})
		},
	}, nil
}

func (sqsBroker) operator(_ Params, cfg *config.Relay) (operator.Broker, error) {
	client, err := SQSClient(cfg.SQS)
	if err != nil {
		return nil, err
	}
	return fifo.Broker(cfg.SQS, client), nil
}

// SQSClient finds region and credential as the AWS SDK does everywhere. It reads files and
// variables; the service is asked later.
func SQSClient(cfg config.SQS) (*awssqs.Client, error) {
	found, err := awsconfig.LoadDefaultConfig(context.Background()) //nolint:forbidigo // its files and variables need no end
	if err != nil {
		return nil, fmt.Errorf("aws configuration: %w", err)
	}
	return awssqs.NewFromConfig(found, func(o *awssqs.Options) {
		if cfg.Region != "" {
			o.Region = cfg.Region
		}
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
		}
	}), nil
}
