package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/relay/relayport"
)

// DeadLetters are the dead-letter queues of a FIFO queue, or of the queues of a FIFO topic, for operators.
// A consumer is the name of a queue.
//
// SQS cannot show messages without delivering them. A read receives letters with a visibility timeout, and
// makes them visible again. Of a message group it gets at most ten letters, because SQS delivers no more of
// a group while some are in flight.
//
// The deduplication id of a resubmission contains its id. It is not an attribute, because a message has at
// most ten, which a dead letter needs.
type DeadLetters struct {
	client *sqs.Client
	// find returns the URL of the queue of a consumer, or "".
	find func(ctx context.Context, consumerName string) (queueURL string, err error)
}

var _ relayport.DeadLetters = (*DeadLetters)(nil)

// NewDeadLetters returns the dead letters of the FIFO queue with this URL. It does no I/O.
func NewDeadLetters(client *sqs.Client, queueURL string) *DeadLetters {
	return &DeadLetters{client, func(_ context.Context, name string) (string, error) {
		if name != queueName(queueURL) {
			return "", nil
		}
		return queueURL, nil
	}}
}

// NewTopicDeadLetters returns the dead letters of the queues of a FIFO topic. A queue that is subscribed no
// more has none. It does no I/O.
func NewTopicDeadLetters(topics *sns.Client, queues *sqs.Client, topicARN string) *DeadLetters {
	return &DeadLetters{queues, func(ctx context.Context, name string) (string, error) {
		all, err := Subscriptions(ctx, topics, topicARN)
		for _, s := range all {
			if endpoint := aws.ToString(s.Endpoint); strings.HasSuffix(endpoint, ":"+name) {
				return QueueURL(ctx, queues, endpoint)
			}
		}
		return "", err
	}}
}

const (
	// resubmissionPrefix begins the deduplication id of a resubmission.
	resubmissionPrefix = "feedbox:"
	// readVisibility and claimVisibility hide letters from other readers if they are not released.
	readVisibility, claimVisibility = time.Minute, 10 * time.Minute
	// maxPassed bounds the letters that a claim locks on its way to others.
	maxPassed = 5000
	// reasonReceives is the reason of letters that SQS has moved itself.
	reasonReceives = "maxReceiveCount exceeded"
)

// Reach implements relayport.DeadLetters.
func (*DeadLetters) Reach(string) string { return "" }

// letterClaim is the set of letters that were received, in their order.
type letterClaim struct {
	*DeadLetters
	queue   string // URL
	url     string // of its dead-letter queue
	expires time.Time
	letters []relayport.DeadLetter
	held    map[string]*types.Message
}

// receive receives letters until enough returns true or no more arrive.
func (d *DeadLetters) receive(ctx context.Context, consumerName string, visibility time.Duration, enough func(c *letterClaim) bool) (*letterClaim, error) {
	c := &letterClaim{DeadLetters: d, held: map[string]*types.Message{}}
	looking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var err error
	if c.queue, err = d.find(looking, consumerName); err == nil && c.queue == "" {
		err = fmt.Errorf("%w: no queue of the broker is %s", relayport.ErrNoConsumer, consumerName)
	}
	if err == nil {
		c.url, err = deadLetterQueue(looking, d.client, c.queue)
	}
	if err != nil {
		return nil, err
	}
	c.expires = time.Now().Add(visibility)
	for !enough(c) {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		answer, err := d.client.ReceiveMessage(attempt, &sqs.ReceiveMessageInput{
			QueueUrl: &c.url, MaxNumberOfMessages: perRequest, VisibilityTimeout: seconds(visibility), WaitTimeSeconds: 1, // long polling asks all servers
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		cancel()
		if err != nil {
			c.Release(ctx)
			return nil, fmt.Errorf("receive the dead letters of %s: %w", consumerName, err)
		}
		if len(answer.Messages) == 0 {
			break
		}
		for i := range answer.Messages {
			m := &answer.Messages[i]
			l := letter(m)
			c.letters, c.held[l.ID] = append(c.letters, l), m
		}
	}
	return c, nil
}

func letter(m *types.Message) relayport.DeadLetter {
	e := event(m)
	l := relayport.DeadLetter{
		ID: aws.ToString(m.MessageId), Event: e.ID, Key: e.Key, Action: e.Action, Sequence: e.Sequence, EnqueuedAt: e.EnqueuedAt, Deliveries: e.DeliveryCount,
		Headers: map[string]string{}, Body: e.Body,
	}
	reason, _ := e.Properties[AttributeDeadLetterReason].(string)
	l.Reason, l.Description, _ = strings.Cut(reason, ": ")
	if reason == "" && m.Attributes["DeadLetterQueueSourceArn"] != "" {
		l.Reason = reasonReceives
	}
	for name, value := range m.Attributes {
		l.Headers[name] = value
	}
	for name, value := range e.Properties {
		l.Headers[name] = fmt.Sprint(value)
	}
	return l
}

// Read implements relayport.DeadLetters.
func (d *DeadLetters) Read(ctx context.Context, consumerName string, limit int) ([]relayport.DeadLetter, bool, error) {
	c, err := d.receive(ctx, consumerName, readVisibility, func(c *letterClaim) bool { return len(c.letters) > limit })
	if err != nil {
		return nil, false, err
	}
	defer c.Release(ctx)
	if len(c.letters) > limit {
		return c.letters[:limit], true, nil
	}
	const waiting = types.QueueAttributeNameApproximateNumberOfMessages // those of groups with more letters
	counting, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := d.client.GetQueueAttributes(counting, &sqs.GetQueueAttributesInput{QueueUrl: &c.url, AttributeNames: []types.QueueAttributeName{waiting}})
	if err != nil {
		return nil, false, err
	}
	left, _ := strconv.Atoi(found.Attributes[string(waiting)])
	return c.letters, left > 0, nil
}

// Claim implements relayport.DeadLetters.
func (d *DeadLetters) Claim(ctx context.Context, consumerName string, ids []string) (relayport.LetterClaim, error) {
	return d.receive(ctx, consumerName, claimVisibility, func(c *letterClaim) bool {
		return len(c.letters) >= maxPassed || !slices.ContainsFunc(ids, func(id string) bool { return c.held[id] == nil })
	})
}

// locked returns a letter, unless its visibility timeout may end during a request.
func (c *letterClaim) locked(id string) (*types.Message, error) {
	m := c.held[id]
	if m == nil {
		return nil, fmt.Errorf("%s: %w", id, relayport.ErrNoLetter)
	}
	if time.Until(c.expires) < time.Minute {
		return nil, errors.New("the visibility timeout of the letter has nearly ended: repeat the command")
	}
	return m, nil
}

// Resubmit implements relayport.LetterClaim.
func (c *letterClaim) Resubmit(ctx context.Context, id string, r relayport.Resubmission) error {
	m, err := c.locked(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	attributes := map[string]types.MessageAttributeValue{}
	maps.Copy(attributes, m.MessageAttributes)
	delete(attributes, AttributeDeadLetterReason)
	if _, known := attributes[publish.PropertyID]; !known { // the deduplication id was that of the event
		attributes[publish.PropertyID] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(event(m).ID)}
	}
	body := aws.ToString(m.Body)
	if r.Body != nil {
		body = string(r.Body)
	}
	_, err = c.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &c.queue, MessageBody: &body, MessageAttributes: attributes,
		MessageGroupId: aws.String(m.Attributes["MessageGroupId"]), MessageDeduplicationId: aws.String(resubmissionPrefix + r.ID),
	})
	return err
}

// Remove implements relayport.LetterClaim.
func (c *letterClaim) Remove(ctx context.Context, id string) error {
	m, err := c.locked(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err = c.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &c.url, ReceiptHandle: m.ReceiptHandle}); err == nil {
		delete(c.held, id)
	}
	return err
}

// Release implements relayport.LetterClaim. A letter that it cannot release becomes visible at the end of
// its timeout.
func (c *letterClaim) Release(ctx context.Context) {
	for some := range slices.Chunk(slices.Collect(maps.Values(c.held)), perRequest) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(some))
		for i, m := range some {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
		}
		ctx, cancel := bounded(ctx)
		_, _ = c.client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &c.url, Entries: entries})
		cancel()
	}
}
