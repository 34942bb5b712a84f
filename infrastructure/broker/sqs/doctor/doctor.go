// Package doctor checks a FIFO queue of Amazon SQS, or a FIFO topic of Amazon SNS with its queues, for an
// operator.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/sqs"
	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// Doctor checks a queue, or a topic and the queues that are subscribed to it. It publishes nothing and is
// safe for concurrent use.
type Doctor struct {
	queue, topic string // URL of the queue; or ARN of the topic
	topics       *sns.Client
	queues       *awssqs.Client
}

// New returns the doctor of the queue in cfg. It does no I/O.
func New(cfg config.SQS, client *awssqs.Client) *Doctor {
	return &Doctor{queue: string(cfg.QueueURL), queues: client}
}

// NewTopic returns the doctor of the topic in cfg. It does no I/O.
func NewTopic(cfg config.SNS, topics *sns.Client, queues *awssqs.Client) *Doctor {
	return &Doctor{topic: cfg.TopicARN, topics: topics, queues: queues}
}

// Window implements operator.BrokerDoctor. All FIFO queues and topics have the same window.
func (d *Doctor) Window(context.Context, string) operator.Window {
	return operator.Window{Length: sqs.Window}
}

// Consumers implements operator.BrokerDoctor: the queue is that of all consumers, or each queue of the
// topic has its own.
func (d *Doctor) Consumers(ctx context.Context, _ string) (names []string, err error) {
	if d.topic == "" {
		return []string{last(d.queue, "/")}, nil
	}
	all, err := sqs.Subscriptions(ctx, d.topics, d.topic)
	for _, s := range all {
		names = append(names, last(aws.ToString(s.Endpoint), ":"))
	}
	return names, err
}

// Examine implements operator.BrokerDoctor.
func (d *Doctor) Examine(step func(operator.Examination) bool, _ string, resend time.Duration) {
	if d.topic == "" {
		step(func(ctx context.Context) []operator.Finding {
			found, attributes := d.examineQueue(ctx, "queue "+config.Address(d.queue).String(), d.queue)
			if attributes != nil {
				found = append(found, window(resend))
			}
			return found
		})
		return
	}
	maxBytes := 0
	if step(func(ctx context.Context) (found []operator.Finding) {
		if found, maxBytes = d.examineTopic(ctx); maxBytes > 0 {
			found = append(found, window(resend))
		}
		return found
	}) {
		step(func(ctx context.Context) []operator.Finding { return d.examineSubscriptions(ctx, maxBytes) })
	} else {
		step(operator.Unexamined("topic "+d.topic, "subscriptions"))
	}
}

func last(text, separator string) string { return text[strings.LastIndex(text, separator)+1:] }

func window(resend time.Duration) operator.Finding {
	f := operator.Fine("duplicate window", "%v, as for every FIFO queue and topic", sqs.Window)
	if resend > sqs.Window {
		f = f.Is(operator.FindingWarning, "a takeover may repeat events that were sent "+resend.String()+" ago: lower FEEDBOX_LEASE_EXPIRY and FEEDBOX_DRAIN_TIMEOUT, and give each consumer an inbox")
	}
	return f
}

// examineQueue returns the findings about a queue and its attributes, or nil if they cannot be read.
func (d *Doctor) examineQueue(ctx context.Context, check, url string) ([]operator.Finding, map[string]string) {
	queue, err := d.queues.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return []operator.Finding{unreadable(operator.Fine(check, "%v", err), sqs.Classify(ctx, err))}, nil
	}
	if queue.Attributes[string(types.QueueAttributeNameFifoQueue)] != "true" {
		return []operator.Finding{operator.Fine(check, "not a FIFO queue").Is(operator.FindingFailed, "create the queue as a FIFO queue; other queues do not keep the order")}, nil
	}
	found := []operator.Finding{operator.Fine(check, "exists")}
	if !sqs.HasHighThroughput(queue.Attributes) {
		found = append(found, operator.Fine("throughput", "at most 300 requests per second for all keys together").Is(operator.FindingWarning,
			"enable the high throughput mode, which keeps the order: aws sqs set-queue-attributes --attributes DeduplicationScope=messageGroup,FifoThroughputLimit=perMessageGroupId"))
	}
	if queue.Attributes[string(types.QueueAttributeNameRedrivePolicy)] == "" {
		found = append(found, operator.Fine("dead letters", "no dead-letter queue").Is(operator.FindingWarning, "an event that a consumer cannot handle blocks its key until it expires: set a redrive policy"))
	}
	return found, queue.Attributes
}

// examineTopic returns the findings about the topic and its limit for a message, 0 if it cannot be used.
func (d *Doctor) examineTopic(ctx context.Context) (found []operator.Finding, maxBytes int) {
	check := "topic " + d.topic
	topic, err := d.topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &d.topic})
	if err != nil {
		return []operator.Finding{unreadable(operator.Fine(check, "%v", err), sqs.Classify(ctx, err))}, 0
	}
	if topic.Attributes["FifoTopic"] != "true" {
		return []operator.Finding{operator.Fine(check, "not a FIFO topic").Is(operator.FindingFailed, "create the topic as a FIFO topic; other topics do not keep the order")}, 0
	}
	found = []operator.Finding{operator.Fine(check, "exists")}
	if topic.Attributes["FifoThroughputScope"] != "MessageGroup" {
		found = append(found, operator.Fine("throughput", "at most 3000 messages per second for all keys together").Is(operator.FindingWarning,
			"enable the high throughput mode, which keeps the order and cannot be disabled: aws sns set-topic-attributes --attribute-name FifoThroughputScope --attribute-value MessageGroup"))
	}
	if maxBytes, _ = strconv.Atoi(topic.Attributes["MaximumMessageSize"]); maxBytes == 0 {
		maxBytes = 256 << 10 // the default, which SNS does not return
	}
	return found, maxBytes
}

// examineSubscriptions looks for what makes SNS discard events for one queue although the topic has
// accepted them. The relay cannot notice it.
func (d *Doctor) examineSubscriptions(ctx context.Context, maxBytes int) (found []operator.Finding) {
	all, err := sqs.Subscriptions(ctx, d.topics, d.topic)
	if err != nil {
		return []operator.Finding{operator.Fine("subscriptions", "%v", err).Is(operator.FindingUnknown, "allow sns:ListSubscriptionsByTopic, sns:GetSubscriptionAttributes, sqs:GetQueueUrl and sqs:GetQueueAttributes")}
	}
	if len(all) == 0 {
		return []operator.Finding{operator.Fine("subscriptions", "none: SNS discards all events").Is(operator.FindingFailed, "subscribe a FIFO queue for each group of consumers, with sqs.DeclareTopic")}
	}
	for _, s := range all {
		found = append(found, d.examineSubscription(ctx, s, maxBytes)...)
	}
	return found
}

func (d *Doctor) examineSubscription(ctx context.Context, s snstypes.Subscription, maxBytes int) []operator.Finding {
	endpoint := aws.ToString(s.Endpoint)
	check := "queue " + last(endpoint, ":")
	replay := "then send the events of that time again: feedbox replay --from TIME"
	if aws.ToString(s.SubscriptionArn) == "PendingConfirmation" { // of another account, which may not let us read the queue
		return []operator.Finding{operator.Fine(check, "the subscription is not confirmed: its events are lost").Is(operator.FindingFailed,
			"confirm the subscription with the token that SNS has sent to the queue: aws sns confirm-subscription, "+replay)}
	}
	url, err := sqs.QueueURL(ctx, d.queues, endpoint)
	if err != nil {
		if e, ok := errors.AsType[*relay.Error](sqs.Classify(ctx, err)); ok && e.Reason == "queue_not_found" {
			return []operator.Finding{operator.Fine(check, "does not exist: its events are lost").Is(operator.FindingFailed, "declare it again with sqs.DeclareTopic, "+replay+"; or remove the subscription "+aws.ToString(s.SubscriptionArn))}
		}
		return []operator.Finding{operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "allow sqs:GetQueueUrl and sqs:GetQueueAttributes, or examine it with its own account")}
	}
	found, queue := d.examineQueue(ctx, check, url)
	if queue == nil {
		return found
	}
	subscription, err := d.topics.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: s.SubscriptionArn})
	if err != nil {
		return append(found, operator.Fine(check, "%v", err).Is(operator.FindingUnknown, "allow sns:GetSubscriptionAttributes"))
	}
	add := func(status operator.FindingStatus, detail, next string) {
		found = append(found, operator.Fine(check, "%s", detail).Is(status, next))
	}
	if !strings.Contains(queue[string(types.QueueAttributeNamePolicy)], d.topic) {
		add(operator.FindingFailed, "its policy does not name the topic: its events are lost", "allow sqs:SendMessage to sns.amazonaws.com with the topic as aws:SourceArn, "+replay)
	}
	if !strings.EqualFold(subscription.Attributes["RawMessageDelivery"], "true") {
		add(operator.FindingFailed, "receives events in an envelope of SNS, which consumers cannot read", "set RawMessageDelivery of the subscription to true")
	}
	if limit, err := strconv.Atoi(queue[string(types.QueueAttributeNameMaximumMessageSize)]); err == nil && limit < maxBytes {
		add(operator.FindingWarning, fmt.Sprintf("accepts %d bytes, the topic %d: larger events are lost to this queue", limit, maxBytes), "raise MaximumMessageSize of the queue and of its dead-letter queue")
	}
	if p := subscription.Attributes["FilterPolicy"]; p != "" && p != "{}" {
		add(operator.FindingWarning, "has a filter policy: consumers see gaps in the sequences and wait for them", "remove the filter, and ignore events in the handler")
	}
	if subscription.Attributes["RedrivePolicy"] == "" {
		add(operator.FindingWarning, "the subscription has no dead-letter queue: SNS discards what it cannot deliver", "set RedrivePolicy of the subscription to a FIFO queue")
	}
	return found
}

func unreadable(f operator.Finding, err error) operator.Finding {
	next := "no response: check the region, FEEDBOX_SQS_ENDPOINT or FEEDBOX_SNS_ENDPOINT, and the network"
	if e, ok := errors.AsType[*relay.Error](err); ok {
		switch e.Reason {
		case "queue_not_found":
			next = "create the FIFO queue, or set FEEDBOX_SQS_QUEUE_URL to one that exists"
		case "topic_not_found":
			next = "create the FIFO topic, or set FEEDBOX_SNS_TOPIC_ARN to one that exists"
		case "credential":
			next = "renew the credential, or correct the role that this process assumes and its trust policy; compare the clock of this machine"
		case "access_denied":
			next = "allow sqs:GetQueueAttributes and sqs:SendMessage, or sns:GetTopicAttributes and sns:Publish: check the policies of the credential, and of the queue or topic"
		}
	}
	return f.Is(operator.FindingFailed, next)
}
