// Package fifo is a FIFO queue of Amazon SQS as an operator sees it.
package fifo

import (
	"context"
	"errors"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

type broker struct {
	cfg    config.SQS
	client *awssqs.Client
}

// Broker is an operator's side of a queue.
func Broker(cfg config.SQS, client *awssqs.Client) operator.Broker { return &broker{cfg, client} }

// Open implements operator.Broker.
func (b *broker) Open() (operator.Publisher, error) {
	return sqs.NewPublisher(b.client, b.cfg.QueueURL, &sqs.PublisherOptions{Source: b.cfg.Source})
}

// Close implements operator.Broker: requests need no connection.
func (b *broker) Close(context.Context) error { return nil }

// Window implements operator.Broker. It is the same for every queue.
func (b *broker) Window(context.Context, string) operator.Window {
	return operator.Window{Length: sqs.Window}
}

// Examine implements operator.Broker.
func (b *broker) Examine(step func(operator.Examination) bool, _ string, resend time.Duration) {
	step(func(ctx context.Context) []operator.Finding { return b.examineQueue(ctx, resend) })
}

// examineQueue reads how the queue is set up.
func (b *broker) examineQueue(ctx context.Context, resend time.Duration) []operator.Finding {
	check := "queue " + b.cfg.QueueURL
	queue, err := b.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
		QueueUrl: &b.cfg.QueueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return []operator.Finding{unread(operator.Fine(check, "%v", err), sqs.Classify(ctx, err))}
	}
	if queue.Attributes[string(types.QueueAttributeNameFifoQueue)] != "true" {
		return []operator.Finding{operator.Fine(check, "not a FIFO queue").Is(operator.FindingFailed, "create the queue as a FIFO queue; others keep no order")}
	}
	found := []operator.Finding{operator.Fine(check, "there")}
	window := operator.Fine("duplicate window", "%v, of every FIFO queue", sqs.Window)
	if resend > sqs.Window {
		window = window.Is(operator.FindingWarning, "a takeover may send again what was sent "+resend.String()+" ago: lower FEEDBOX_LEASE_EXPIRY and FEEDBOX_DRAIN_TIMEOUT, and give each consumer an inbox")
	}
	found = append(found, window)
	if queue.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == "" {
		found = append(found, operator.Fine("dead letters", "no queue for them").Is(operator.FindingWarning, "an event that a consumer cannot handle holds up its key until it expires: set a redrive policy"))
	}
	return found
}

func unread(f operator.Finding, err error) operator.Finding {
	next := "nothing answers: check the region, FEEDBOX_SQS_ENDPOINT and the network"
	if e, ok := errors.AsType[*relay.Error](err); ok {
		switch e.Reason {
		case "queue_not_found":
			next = "create the FIFO queue, or set FEEDBOX_SQS_QUEUE_URL to one that exists"
		case "access_denied", "credential":
			next = "the credential may not sqs:GetQueueAttributes or sqs:SendMessage: check its policy and that of the queue"
		}
	}
	return f.Is(operator.FindingFailed, next)
}
