package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/infrastructure/consumer"
)

// AttributeDeadLetterReason is an attribute of dead letters, beside those of the event: the
// reason, and after a colon what the handler said.
const AttributeDeadLetterReason = "DeadLetterReason"

// maxReceiveCount is how often the service gives an event to consumers, who end each time before
// they say anything of it, until it moves it to the dead letters. A consumer that lives counts
// attempts by itself: of an event that waits behind another one none is made.
const maxReceiveCount = "100"

// redrivePolicy says where dead letters go. The service has its numbers as texts or numbers.
type redrivePolicy struct {
	Target string `json:"deadLetterTargetArn"`
	Max    any    `json:"maxReceiveCount"`
}

// Declare makes the FIFO queue of this name, which ends in .fifo, and one for its dead letters.
// What exists already is left as it is if it has the same properties; else that is an error.
func Declare(ctx context.Context, client *sqs.Client, name string) (queueURL string, err error) {
	stem, ok := strings.CutSuffix(name, ".fifo")
	if !ok || stem == "" {
		return "", fmt.Errorf("declare queue %q: the name of a FIFO queue ends in .fifo", name)
	}
	fifo := map[string]string{"FifoQueue": "true"}
	letters, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(stem + "-dead-letters.fifo"), Attributes: fifo})
	if err != nil {
		return "", fmt.Errorf("declare the dead letters of %q: %w", name, err)
	}
	arn := types.QueueAttributeNameQueueArn
	found, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: letters.QueueUrl, AttributeNames: []types.QueueAttributeName{arn}})
	if err != nil {
		return "", fmt.Errorf("declare the dead letters of %q: %w", name, err)
	}
	policy, err := json.Marshal(redrivePolicy{found.Attributes[string(arn)], maxReceiveCount})
	if err != nil {
		return "", err
	}
	fifo = map[string]string{"FifoQueue": "true", "RedrivePolicy": string(policy)}
	queue, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: fifo})
	if err != nil {
		return "", fmt.Errorf("declare queue %q: %w", name, err)
	}
	return *queue.QueueUrl, nil
}

// deadLetter stores a copy of m among the dead letters, with the reason.
func (c *Consumer) deadLetter(ctx context.Context, m *types.Message, letter *consumer.DeadLetterError) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to, err := c.deadLetterQueue(ctx)
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
	}, letter.Reason+": "+letter.Description())
	attributes[AttributeDeadLetterReason] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &reason}
	group, id := m.Attributes["MessageGroupId"], m.Attributes["MessageDeduplicationId"]
	_, err = c.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &to, MessageBody: m.Body, MessageAttributes: attributes, MessageGroupId: &group, MessageDeduplicationId: &id,
	})
	return err
}

// deadLetterQueue is where the queue's redrive policy has dead letters go.
func (c *Consumer) deadLetterQueue(ctx context.Context) (url string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deadLetters != "" {
		return c.deadLetters, nil
	}
	found, err := c.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &c.queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return "", err
	}
	var policy redrivePolicy
	_ = json.Unmarshal([]byte(found.Attributes[string(types.QueueAttributeNameRedrivePolicy)]), &policy) // there may be none
	parts := strings.Split(policy.Target, ":")
	if len(parts) != 6 {
		return "", errors.New("the queue has no redrive policy: set one, so that dead letters have a place")
	}
	queue, err := c.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &parts[5], QueueOwnerAWSAccountId: &parts[4]})
	if err != nil {
		return "", fmt.Errorf("the queue for dead letters: %w", err)
	}
	c.deadLetters = *queue.QueueUrl
	return c.deadLetters, nil
}
