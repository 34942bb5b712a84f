package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// topic is the FIFO topic of a publisher.
type topic struct {
	client *sns.Client
	arn    string
}

// NewTopicPublisher returns a publisher to the FIFO topic of SNS with this ARN. It does no I/O. All queues
// that are subscribed to the topic receive each event.
func NewTopicPublisher(client *sns.Client, topicARN string, opts *PublisherOptions) (*Publisher, error) {
	if client == nil || topicARN == "" {
		return nil, errors.New("sqs publisher: a client of SNS and the ARN of a FIFO topic are required")
	}
	return newPublisher(topic{client, topicARN}, topicARN, opts)
}

func (t topic) send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	request := make([]snstypes.PublishBatchRequestEntry, len(entries))
	for i, e := range entries {
		attributes := make(map[string]snstypes.MessageAttributeValue, len(e.MessageAttributes))
		for name, value := range e.MessageAttributes {
			attributes[name] = snstypes.MessageAttributeValue{DataType: value.DataType, StringValue: value.StringValue}
		}
		request[i] = snstypes.PublishBatchRequestEntry{
			Id: e.Id, Message: e.MessageBody, MessageAttributes: attributes, MessageGroupId: e.MessageGroupId, MessageDeduplicationId: e.MessageDeduplicationId,
		}
	}
	found, err := t.client.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: &t.arn, PublishBatchRequestEntries: request},
		func(o *sns.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return nil, err
	}
	answer := &sqs.SendMessageBatchOutput{}
	for _, f := range found.Failed {
		answer.Failed = append(answer.Failed, types.BatchResultErrorEntry{Id: f.Id, Code: f.Code, Message: f.Message, SenderFault: f.SenderFault})
	}
	for _, s := range found.Successful {
		answer.Successful = append(answer.Successful, types.SendMessageBatchResultEntry{Id: s.Id})
	}
	return answer, nil
}

// maxBytes reads the limit of a topic, which is that of a message and of all messages of a request. SNS
// does not return it if it is the default.
func (t topic) maxBytes(ctx context.Context) (message, total int, err error) {
	found, err := t.client.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &t.arn})
	if err != nil {
		return 0, 0, err
	}
	limit, err := strconv.Atoi(cmp.Or(found.Attributes["MaximumMessageSize"], strconv.Itoa(minRequestBytes)))
	return limit, limit, err
}

// minBytes implements destination: the lowest limit that a topic can have.
func (topic) minBytes() int { return 1 << 10 }

// DeclareTopic creates a FIFO topic in high throughput mode, and for each queue what Declare creates, the
// permission for the topic, and a subscription with raw message delivery. Messages that SNS cannot
// deliver go to the dead-letter queue of the queue. All names must end in .fifo. DeclareTopic does not
// change what exists. It fails if a topic or a subscription has other attributes, or if the policy of a
// queue does not name the topic.
func DeclareTopic(ctx context.Context, topics *sns.Client, queues *sqs.Client, name string, queueNames ...string) (topicARN string, queueURLs []string, err error) {
	if stem, ok := strings.CutSuffix(name, ".fifo"); !ok || stem == "" {
		return "", nil, fmt.Errorf("declare topic %q: the name of a FIFO topic must end in .fifo", name)
	}
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()
	made, err := topics.CreateTopic(ctx, &sns.CreateTopicInput{Name: &name, Attributes: map[string]string{"FifoTopic": "true", "FifoThroughputScope": "MessageGroup"}})
	if err != nil {
		return "", nil, fmt.Errorf("declare topic %q: %w", name, err)
	}
	topicARN = *made.TopicArn
	for _, queueName := range queueNames {
		queueURL, err := Declare(ctx, queues, queueName)
		if err == nil {
			err = subscribe(ctx, topics, queues, topicARN, queueURL)
		}
		if err != nil {
			return "", nil, fmt.Errorf("declare the subscription of %q to topic %q: %w", queueName, name, err)
		}
		queueURLs = append(queueURLs, queueURL)
	}
	return topicARN, queueURLs, nil
}

// subscribe permits the topic to send to a queue and to its dead-letter queue, and subscribes the queue.
func subscribe(ctx context.Context, topics *sns.Client, queues *sqs.Client, topicARN, queueURL string) error {
	deadLetters, err := deadLetterQueue(ctx, queues, queueURL)
	if err != nil {
		return err
	}
	var arns [2]string
	for i, url := range []string{queueURL, deadLetters} {
		if arns[i], err = permit(ctx, queues, topicARN, url); err != nil {
			return err
		}
	}
	redrive, err := json.Marshal(map[string]string{"deadLetterTargetArn": arns[1]})
	if err != nil {
		return err
	}
	_, err = topics.Subscribe(ctx, &sns.SubscribeInput{
		TopicArn: &topicARN, Protocol: aws.String("sqs"), Endpoint: &arns[0], Attributes: map[string]string{"RawMessageDelivery": "true", "RedrivePolicy": string(redrive)},
	})
	return err
}

// permit gives a queue a policy, so that the topic may send to it, and returns the ARN of the queue.
func permit(ctx context.Context, client *sqs.Client, topicARN, queueURL string) (queueARN string, err error) {
	const address, policy = types.QueueAttributeNameQueueArn, types.QueueAttributeNamePolicy
	found, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{address, policy}})
	if err != nil {
		return "", err
	}
	queueARN = found.Attributes[string(address)]
	if old := found.Attributes[string(policy)]; old != "" {
		if !strings.Contains(old, topicARN) {
			err = fmt.Errorf("the policy of %s does not name the topic: allow sqs:SendMessage to sns.amazonaws.com with aws:SourceArn %s", queueName(queueURL), topicARN)
		}
		return queueARN, err
	}
	statement, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]string{"Service": "sns.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": queueARN,
		"Condition": map[string]any{"ArnEquals": map[string]string{"aws:SourceArn": topicARN}},
	}}})
	if err == nil {
		_, err = client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &queueURL, Attributes: map[string]string{string(policy): string(statement)}})
	}
	return queueARN, err
}

// Subscriptions returns the subscriptions of a topic.
func Subscriptions(ctx context.Context, client *sns.Client, topicARN string) (all []snstypes.Subscription, err error) {
	pages := sns.NewListSubscriptionsByTopicPaginator(client, &sns.ListSubscriptionsByTopicInput{TopicArn: &topicARN})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Subscriptions...)
	}
	return all, nil
}

// QueueURL returns the URL of the queue with this ARN.
func QueueURL(ctx context.Context, client *sqs.Client, queueARN string) (string, error) {
	a, err := arn.Parse(queueARN)
	if err != nil || a.Service != "sqs" {
		return "", fmt.Errorf("%q is not the ARN of a queue", queueARN)
	}
	queue, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &a.Resource, QueueOwnerAWSAccountId: &a.AccountID})
	if err != nil {
		return "", err
	}
	return *queue.QueueUrl, nil
}
