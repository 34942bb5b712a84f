// Package doctor checks a FIFO queue of Amazon SQS for an operator.
package doctor

import (
	"context"
	"errors"
	"strings"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// Doctor checks a queue. It publishes nothing and is safe for concurrent use.
type Doctor struct {
	cfg    config.SQS
	client *awssqs.Client
}

// New returns the doctor of the queue in cfg. It does no I/O.
func New(cfg config.SQS, client *awssqs.Client) *Doctor { return &Doctor{cfg, client} }

// Window implements operator.BrokerDoctor. All FIFO queues have the same window.
func (d *Doctor) Window(context.Context, string) operator.Window {
	return operator.Window{Length: sqs.Window}
}

// Consumers implements operator.BrokerDoctor: the queue is that of all consumers.
func (d *Doctor) Consumers(context.Context, string) ([]string, error) {
	url := string(d.cfg.QueueURL)
	return []string{url[strings.LastIndexByte(url, '/')+1:]}, nil
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, resend time.Duration) {
	step(func(ctx context.Context) []operator.Finding { return d.examineQueue(ctx, resend) })
}

func (d *Doctor) examineQueue(ctx context.Context, resend time.Duration) []operator.Finding {
	check := "queue " + d.cfg.QueueURL.String()
	queue, err := d.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
		QueueUrl: new(string(d.cfg.QueueURL)), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return []operator.Finding{unreadable(operator.Fine(check, "%v", err), sqs.Classify(ctx, err))}
	}
	if queue.Attributes[string(types.QueueAttributeNameFifoQueue)] != "true" {
		return []operator.Finding{operator.Fine(check, "not a FIFO queue").Is(operator.FindingFailed, "create the queue as a FIFO queue; other queues do not keep the order")}
	}
	found := []operator.Finding{operator.Fine(check, "exists")}
	window := operator.Fine("duplicate window", "%v, as for every FIFO queue", sqs.Window)
	if resend > sqs.Window {
		window = window.Is(operator.FindingWarning, "a takeover may repeat events that were sent "+resend.String()+" ago: lower FEEDBOX_LEASE_EXPIRY and FEEDBOX_DRAIN_TIMEOUT, and give each consumer an inbox")
	}
	found = append(found, window)
	if queue.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == "" {
		found = append(found, operator.Fine("dead letters", "no dead-letter queue").Is(operator.FindingWarning, "an event that a consumer cannot handle blocks its key until it expires: set a redrive policy"))
	}
	return found
}

func unreadable(f operator.Finding, err error) operator.Finding {
	next := "no response: check the region, FEEDBOX_SQS_ENDPOINT and the network"
	if e, ok := errors.AsType[*relay.Error](err); ok {
		switch e.Reason {
		case "queue_not_found":
			next = "create the FIFO queue, or set FEEDBOX_SQS_QUEUE_URL to one that exists"
		case "access_denied", "credential":
			next = "allow sqs:GetQueueAttributes and sqs:SendMessage: check the policies of the credential and of the queue"
		}
	}
	return f.Is(operator.FindingFailed, next)
}
