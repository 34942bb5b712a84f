package wiring

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sns"
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
		Broker: sqs.NewRelayBroker(client, string(cfg.SQS.QueueURL), cfg.SQS.Source),
		Doctor: doctor.New(cfg.SQS, client), DeadLetters: sqs.NewDeadLetters(client, string(cfg.SQS.QueueURL)),
	}, nil
}

// snsBroker is a FIFO topic of Amazon SNS with its FIFO queues of SQS.
type snsBroker struct{}

func (snsBroker) name() string { return sqs.TopicBrokerName }

func (snsBroker) open(_ Params, cfg *config.Relay, _ string) (operator.Broker, error) {
	topics, queues, err := SNSClients(cfg.SNS)
	if err != nil {
		return operator.Broker{}, err
	}
	return operator.Broker{
		Broker: sqs.NewTopicRelayBroker(topics, cfg.SNS.TopicARN, cfg.SNS.Source),
		Doctor: doctor.NewTopic(cfg.SNS, topics, queues), DeadLetters: sqs.NewTopicDeadLetters(topics, queues, cfg.SNS.TopicARN),
	}, nil
}

// pings detect a silent HTTP/2 connection. net/http would otherwise use it for all requests, and
// each would time out. The values are those of the Azure SDK.
var pings = http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}

// SQSClient returns a client with the default configuration of the AWS SDK and pings. It reads
// files and variables but does not connect.
func SQSClient(cfg config.SQS) (*awssqs.Client, error) {
	found, err := awsConfig(cfg.Region, cfg.Endpoint)
	return awssqs.NewFromConfig(found), err
}

// SNSClients returns clients of SNS and of the SQS of its queues, as SQSClient does.
func SNSClients(cfg config.SNS) (*sns.Client, *awssqs.Client, error) {
	found, err := awsConfig(cfg.Region(), cfg.Endpoint)
	return sns.NewFromConfig(found), awssqs.NewFromConfig(found), err
}

func awsConfig(region string, endpoint config.Address) (aws.Config, error) {
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.HTTP2 = &pings })
	found, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithHTTPClient(transport)) //nolint:forbidigo // it only reads files and variables
	if err != nil {
		return found, fmt.Errorf("aws configuration: %w", err)
	}
	if region != "" {
		found.Region = region
	}
	if endpoint != "" {
		found.BaseEndpoint = new(string(endpoint))
	}
	return found, nil
}
