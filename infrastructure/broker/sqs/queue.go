package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// AttributeDeadLetterReason is an additional attribute of dead letters. Its value is the reason, a
// colon and the description.
const AttributeDeadLetterReason = "DeadLetterReason"

// maxReceiveCount is the number of receives after which SQS moves an event to the dead-letter queue. It
// is high because it only matters for events whose consumers crash. A running consumer counts attempts
// itself: SQS would also count events that were received and never handled.
const maxReceiveCount = "100"

// redrivePolicy names the dead-letter queue. SQS may return its numbers as strings.
type redrivePolicy struct {
	Target string `json:"deadLetterTargetArn"`
	Max    any    `json:"maxReceiveCount"`
}

// declareTimeout bounds Declare. SQS may take some seconds to create a queue.
const declareTimeout = time.Minute

// highThroughput gives each message group its own quota. By default all groups share 300 requests per
// second. Its narrower scope of deduplication loses nothing, because an event always has the same group.
var highThroughput = map[string]string{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}

// HasHighThroughput reports whether the attributes of a FIFO queue enable its high throughput mode.
func HasHighThroughput(attributes map[string]string) bool {
	for name, value := range highThroughput {
		if attributes[name] != value {
			return false
		}
	}
	return true
}

// Declare creates a FIFO queue, whose name must end in .fifo, and its dead-letter queue, both in high
// throughput mode. It does not change existing queues. It fails if they have different attributes, but
// accepts queues without that mode, because earlier versions created them.
func Declare(ctx context.Context, client *sqs.Client, name string) (queueURL string, err error) {
	stem, ok := strings.CutSuffix(name, ".fifo")
	if !ok || stem == "" {
		return "", fmt.Errorf("declare queue %q: the name of a FIFO queue must end in .fifo", name)
	}
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	deadLetters, err := create(ctx, client, stem+"-dead-letters.fifo", nil)
	if err != nil {
		return "", fmt.Errorf("declare the dead-letter queue of %q: %w", name, err)
	}
	arn := types.QueueAttributeNameQueueArn
	found, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: deadLetters.QueueUrl, AttributeNames: []types.QueueAttributeName{arn}})
	if err != nil {
		return "", fmt.Errorf("declare the dead-letter queue of %q: %w", name, err)
	}
	policy, err := json.Marshal(redrivePolicy{found.Attributes[string(arn)], maxReceiveCount})
	if err != nil {
		return "", err
	}
	queue, err := create(ctx, client, name, map[string]string{"RedrivePolicy": string(policy)})
	if err != nil {
		return "", fmt.Errorf("declare queue %q: %w", name, err)
	}
	return *queue.QueueUrl, nil
}

// create creates a FIFO queue in high throughput mode, or returns an existing one, in any mode.
func create(ctx context.Context, client *sqs.Client, name string, attributes map[string]string) (*sqs.CreateQueueOutput, error) {
	all := map[string]string{"FifoQueue": "true"}
	maps.Copy(all, attributes)
	maps.Copy(all, highThroughput)
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: all})
	if _, differs := errors.AsType[*types.QueueNameExists](err); differs {
		maps.DeleteFunc(all, func(name, _ string) bool { return highThroughput[name] != "" })
		return client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: all})
	}
	return queue, err
}

// queueName returns the name in the URL of a queue.
func queueName(queueURL string) string { return queueURL[strings.LastIndexByte(queueURL, '/')+1:] }

// deadLetter sends a copy of m with the reason to the dead-letter queue.
func (c *Consumer) deadLetter(ctx context.Context, m *types.Message, cause *consumer.DeadLetterError) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to, err := c.knownDeadLetters(ctx)
	if err != nil {
		return err
	}
	attributes := map[string]types.MessageAttributeValue{}
	maps.Copy(attributes, m.MessageAttributes)
	reason := strings.Map(func(r rune) rune {
		if unsendable(string(r)) >= 0 {
			return ' '
		}
		return r
	}, cause.Code()+": "+cause.Description())
	attributes[AttributeDeadLetterReason] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &reason}
	group, id := m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"]
	letter := &sqs.SendMessageInput{QueueUrl: &to, MessageBody: m.Body, MessageAttributes: attributes, MessageGroupId: &group, MessageDeduplicationId: &id}
	_, err = c.client.SendMessage(ctx, letter)
	if refused, ok := errors.AsType[smithy.APIError](err); ok && !isCredential(err) && ruleFor(refused.ErrorCode(), false).Class == relay.Refused {
		// A message of the maximum size or with ten attributes has no room for the reason.
		c.dispatcher.Log().WarnContext(ctx, "dead letter sent again without its reason", "event", id, "reason", reason, "error", err)
		letter.MessageAttributes = m.MessageAttributes
		_, err = c.client.SendMessage(ctx, letter)
	}
	return err
}

// knownDeadLetters returns the URL of the dead-letter queue, which it looks up once.
func (c *Consumer) knownDeadLetters(ctx context.Context) (url string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadLetters == "" {
		c.deadLetters, err = deadLetterQueue(ctx, c.client, c.queue)
	}
	return c.deadLetters, err
}

// deadLetterQueue returns the URL of the queue in the redrive policy.
func deadLetterQueue(ctx context.Context, client *sqs.Client, queueURL string) (url string, err error) {
	found, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return "", err
	}
	var policy redrivePolicy
	_ = json.Unmarshal([]byte(found.Attributes[string(types.QueueAttributeNameRedrivePolicy)]), &policy) // there may be none
	if policy.Target == "" {
		return "", errors.New("the queue has no redrive policy: set one that names a dead-letter queue")
	}
	if url, err = QueueURL(ctx, client, policy.Target); err != nil {
		return "", fmt.Errorf("get the URL of the dead-letter queue: %w", err)
	}
	return url, nil
}
