package sqs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"golang.org/x/sync/semaphore"

	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Consumer passes the events of a FIFO queue to a handler, in the order of their keys. A queue may have
// any number of consumers.
type Consumer struct {
	client     *sqs.Client
	queue      string
	opts       ConsumerOptions
	dispatcher *handling.Dispatcher

	mu          sync.Mutex // guards deadLetters
	deadLetters string     // URL of the dead-letter queue; "" until it is looked up
}

// ConsumerOptions are the options of NewConsumer. Zero means the default.
type ConsumerOptions struct {
	consumer.Options
	// Receivers is the number of concurrent receive requests. Default 4.
	Receivers int
	// MaxInFlight is the maximum number of events in flight, including events that wait for their
	// key. Default 200; at least 10 for each receiver.
	MaxInFlight int
	// Wait is how long SQS waits for events before it returns an empty response (long polling).
	// Default and maximum 20 s.
	Wait time.Duration
	// Visibility is the visibility timeout of received events, which is extended while they are in
	// flight. After a crash their keys wait for this time. Whole seconds, at least 2. Default 30 s.
	Visibility time.Duration
}

// NewConsumer returns a consumer of the FIFO queue with this URL. It does no I/O. Dead letters are sent
// to the queue in the redrive policy. Declare creates both queues.
func NewConsumer(client *sqs.Client, queueURL string, handler consumer.Handler, opts *ConsumerOptions) (*Consumer, error) {
	c := &Consumer{client: client, queue: queueURL, opts: *cmp.Or(opts, &ConsumerOptions{})}
	o := &c.opts
	o.Receivers, o.MaxInFlight = cmp.Or(o.Receivers, 4), cmp.Or(o.MaxInFlight, 200)
	o.Wait, o.Visibility = cmp.Or(o.Wait, 20*time.Second), cmp.Or(o.Visibility, 30*time.Second)
	var faults []error
	if client == nil || queueURL == "" {
		faults = append(faults, errors.New("a client and the URL of a FIFO queue are required"))
	}
	if o.Receivers < 0 || o.MaxInFlight < perRequest*o.Receivers {
		faults = append(faults, fmt.Errorf("option Receivers must be positive, and MaxInFlight at least %d for each", perRequest))
	}
	if o.Wait < 0 || o.Wait > 20*time.Second || o.Visibility < 2*time.Second || o.Visibility > time.Hour {
		faults = append(faults, errors.New("option Wait must be 0 to 20 s, Visibility 2 s to 1 h"))
	}
	var err error
	source := handling.Source{System: "aws_sqs", Destination: queueName(queueURL)}
	if c.dispatcher, err = handling.NewDispatcher(source, advise, handler, o.Options); err != nil || faults != nil {
		return nil, fmt.Errorf("sqs consumer: %w", errors.Join(append(faults, err)...))
	}
	c.dispatcher.WakeBy(c.wake)
	return c, nil
}

// typeWakeUp is the type of a message that is no event: the process that receives it owns its group, and
// carries out the intent of an operator.
const typeWakeUp = "feedbox.wakeUp"

// isWakeUp reports whether a message is a wake-up. An event may have any action, but its body is JSON.
func isWakeUp(e *consumer.Event) bool { return e.Action == typeWakeUp && string(e.Body) == typeWakeUp }

func (c *Consumer) wake(ctx context.Context, key string) error {
	text := func(value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	_, err := c.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &c.queue, MessageBody: aws.String(typeWakeUp), MessageGroupId: aws.String(GroupID(key)), MessageDeduplicationId: aws.String(rand.Text()),
		MessageAttributes: map[string]types.MessageAttributeValue{publish.PropertyType: text(typeWakeUp), consumer.PropertyKey: text(key)},
	})
	return err
}

// Run receives events until ctx ends, then drains and returns nil. It retries after failures of the
// service and of the handler. Run may be called again after it has returned.
func (c *Consumer) Run(ctx context.Context) error {
	if c == nil || c.dispatcher == nil {
		return errors.New("sqs: the Consumer is not made by NewConsumer")
	}
	r := &run{
		Consumer: c, inFlight: make(map[*message]bool), settled: make(chan *message, c.opts.MaxInFlight), room: semaphore.NewWeighted(int64(c.opts.MaxInFlight)),
	}
	extending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background sync.WaitGroup
	background.Go(func() { r.extendExpiring(extending) })
	for range c.opts.Receivers {
		background.Go(func() { r.deleteSettled(extending) })
	}
	c.dispatcher.Run(ctx, slices.Repeat([]handling.Receiver{r.receive}, c.opts.Receivers), func(ctx context.Context) {
		close(r.settled)
		stop()
		background.Wait()
		r.releaseAll(ctx)
	})
	return nil
}

// receive waits until there is room for the events of one request, and receives them.
func (r *run) receive(ctx, working context.Context) error {
	if err := r.room.Acquire(ctx, perRequest); err != nil {
		return err // ctx has ended
	}
	polling, cancel := context.WithTimeout(ctx, r.opts.Wait+requestTimeout)
	defer cancel()
	answer, err := r.client.ReceiveMessage(polling, &sqs.ReceiveMessageInput{
		QueueUrl: &r.queue, MaxNumberOfMessages: perRequest, WaitTimeSeconds: seconds(r.opts.Wait), VisibilityTimeout: seconds(r.opts.Visibility),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}, func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }) // the dispatcher retries, and logs the first failure at once
	if err != nil {
		r.room.Release(perRequest)
		return err
	}
	r.room.Release(int64(perRequest - len(answer.Messages)))
	for i := range answer.Messages {
		r.dispatcher.Add(ctx, r.track(working, &answer.Messages[i]))
	}
	return nil
}

// advise returns what to do about the error of a receive request.
func advise(err error) handling.Advice {
	failed, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return handling.Advice{}
	}
	a := handling.Advice{Reason: ruleFor(failed.ErrorCode(), false).Reason, Next: "see the error; the consumer tries again"}
	if isCredential(err) {
		a.Reason = "credential"
	}
	switch a.Reason {
	case "queue_not_found":
		a.Next = "correct the URL and the region of the queue, or create it with sqs.Declare"
	case "access_denied", "key_denied":
		a.Next = "permit the identity to receive, delete and change the visibility of messages of the queue, and to use its KMS key"
	case "credential":
		a.Next = "renew the credentials, or correct the role and its trust policy, and compare the clock of this machine: a request expires after minutes"
	}
	return a
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

func event(m *types.Message) *consumer.Event {
	e := &consumer.Event{Body: []byte(aws.ToString(m.Body)), Properties: make(map[string]any, len(m.MessageAttributes))}
	for name, v := range m.MessageAttributes {
		e.Properties[name] = property(v)
	}
	handling.ReadProperties(e)
	handling.ReadCreation(e, e.Properties[publish.PropertyTime])
	e.ID, _ = e.Properties[publish.PropertyID].(string)
	e.Action, _ = e.Properties[publish.PropertyType].(string)
	e.ID = cmp.Or(e.ID, m.Attributes["MessageDeduplicationId"])
	if id, ok := strings.CutPrefix(m.Attributes["MessageDeduplicationId"], resubmissionPrefix); ok {
		e.Resubmission = id
	}
	e.Key = cmp.Or(e.Key, m.Attributes["MessageGroupId"])
	received, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	e.DeliveryCount = max(1, received)
	if sent, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		e.EnqueuedAt = time.UnixMilli(sent)
	}
	return e
}

// property returns an attribute as string, int64 or bytes.
func property(v types.MessageAttributeValue) any {
	if v.StringValue == nil {
		return v.BinaryValue
	}
	if n, err := strconv.ParseInt(*v.StringValue, 10, 64); err == nil && aws.ToString(v.DataType) == "Number" {
		return n
	}
	return *v.StringValue
}
