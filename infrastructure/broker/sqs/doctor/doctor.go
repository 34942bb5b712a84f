// Package doctor examines a FIFO queue of Amazon SQS for an operator.
package doctor

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

// Doctor examines a queue. It sends nothing, and is safe for concurrent use.
type Doctor struct {
	cfg    config.SQS
	client *awssqs.Client
}

var _ operator.BrokerDoctor = (*Doctor)(nil)

// New returns the doctor of the queue that cfg names. It does no I/O.
func New(cfg config.SQS, client *awssqs.Client) *Doctor { return &Doctor{cfg, client} }

// Window implements operator.BrokerDoctor. It is the same for every queue.
func (d *Doctor) Window(context.Context, string) operator.Window {
	return operator.Window{Length: sqs.Window}
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, resend time.Duration) {
	step(func(ctx context.Context) []operator.Finding { return d.examineQueue(ctx, resend) })
}

// examineQueue reads how the queue is set up.
func (d *Doctor) examineQueue(ctx context.Context, resend time.Duration) []operator.Finding {
	check := "queue " + d.cfg.QueueURL
	queue, err := d.client.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
		QueueUrl: &d.cfg.QueueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
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
