package wiring

import (
	"context"
	"fmt"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/broker/sqs/doctor"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// sqsBroker is a FIFO queue of Amazon SQS.
type sqsBroker struct{}

func (sqsBroker) name() string { return sqs.BrokerName }

func (sqsBroker) open(_ Params, cfg *config.Relay, _ string) (operator.Broker, error) {
	client, err := SQSClient(cfg.SQS)
	if err != nil {
		return operator.Broker{}, err
	}
	return operator.Broker{
		Broker: sqs.NewRelayBroker(client, cfg.SQS.QueueURL, cfg.SQS.Source),
		Doctor: doctor.New(cfg.SQS, client),
	}, nil
}

// SQSClient returns a client with the default configuration of the AWS SDK. It reads files
// and variables but does not connect.
func SQSClient(cfg config.SQS) (*awssqs.Client, error) {
	found, err := awsconfig.LoadDefaultConfig(context.Background()) //nolint:forbidigo // it only reads files and variables
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
