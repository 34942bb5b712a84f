package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"

	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Consumer gives the events of a FIFO queue to a handler, those of a key in their order. Any
// number of consumers may serve a queue.
type Consumer struct {
	client     *sqs.Client
	queue      string
	opts       ConsumerOptions
	dispatcher *handling.Dispatcher

	mu          sync.Mutex // guards what follows
	deadLetters string     // the queue's URL, once it was asked for
}

// ConsumerOptions are the choices of NewConsumer. Zero means the default.
type ConsumerOptions struct {
	consumer.Options
	// Receivers is how many requests for events may be under way at a time. Default 4.
	Receivers int
	// Held is how many events may be here at a time, those of waiting keys included. Default
	// 200; at least 10 for each receiver.
	Held int
	// Wait is how long the service waits for events before it answers that there are none.
	// Default 20 s, which is the most.
	Wait time.Duration
	// Visibility is how long the service keeps events from others if nothing is heard of this
	// process; it is extended while they are here. After a crash, keys wait for so long. Whole
	// seconds, from 2. Default 30 s.
	Visibility time.Duration
}

// NewConsumer returns a consumer of the FIFO queue with this URL. It does no I/O. Dead letters go
// to the queue that the redrive policy names (Declare makes both).
func NewConsumer(client *sqs.Client, queueURL string, handler consumer.Handler, opts *ConsumerOptions) (*Consumer, error) {
	c := &Consumer{client: client, queue: queueURL, opts: *cmp.Or(opts, &ConsumerOptions{})}
	o := &c.opts
	o.Receivers, o.Held = cmp.Or(o.Receivers, 4), cmp.Or(o.Held, 200)
	o.Wait, o.Visibility = cmp.Or(o.Wait, 20*time.Second), cmp.Or(o.Visibility, 30*time.Second)
	var faults []error
	if client == nil || queueURL == "" {
		faults = append(faults, errors.New("give a client and the URL of a FIFO queue"))
	}
	if o.Receivers < 0 || o.Held < perRequest*o.Receivers {
		faults = append(faults, fmt.Errorf("option Receivers must be positive, and Held at least %d for each", perRequest))
	}
	if o.Wait < 0 || o.Wait > 20*time.Second || o.Visibility < 2*time.Second || o.Visibility > time.Hour {
		faults = append(faults, errors.New("option Wait must be 0 to 20 s, Visibility 2 s to 1 h"))
	}
	var err error
	if c.dispatcher, err = handling.NewDispatcher(handler, o.Options); err != nil || faults != nil {
		return nil, fmt.Errorf("sqs consumer: %w", errors.Join(append(faults, err)...))
	}
	return c, nil
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the service and
// of the handler. Run may be called again after it returned.
func (c *Consumer) Run(ctx context.Context) error {
	r := &reception{
		Consumer: c, held: make(map[*held]bool), settled: make(chan *held, c.opts.Held), room: semaphore.NewWeighted(int64(c.opts.Held)),
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { r.keep(keeping) })
	for range c.opts.Receivers {
		beside.Go(func() { r.delete(keeping) })
	}
	c.dispatcher.Run(ctx, slices.Repeat([]handling.Receiver{r.receive}, c.opts.Receivers), func(ctx context.Context) {
		close(r.settled)
		stop()
		beside.Wait()
		r.giveBack(ctx)
	})
	return nil
}

// receive takes events from the queue, once there is room for as many as may come.
func (r *reception) receive(ctx, working context.Context) error {
	if err := r.room.Acquire(ctx, perRequest); err != nil {
		return err // ctx has ended
	}
	answer, err := r.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &r.queue, MaxNumberOfMessages: perRequest, WaitTimeSeconds: seconds(r.opts.Wait), VisibilityTimeout: seconds(r.opts.Visibility),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		r.room.Release(perRequest)
		return err
	}
	r.room.Release(int64(perRequest - len(answer.Messages)))
	for i := range answer.Messages {
		r.dispatcher.Add(ctx, r.hold(working, &answer.Messages[i]))
	}
	return nil
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

// event reads the event out of a message.
func event(m *types.Message) *consumer.Event {
	e := &consumer.Event{Body: []byte(aws.ToString(m.Body)), Properties: make(map[string]any, len(m.MessageAttributes))}
	for name, v := range m.MessageAttributes {
		e.Properties[name] = property(v)
	}
	handling.ReadProperties(e)
	e.ID, _ = e.Properties[publish.PropertyID].(string)
	e.Action, _ = e.Properties[publish.PropertyType].(string)
	e.ID = cmp.Or(e.ID, m.Attributes["MessageDeduplicationId"])
	e.Key = cmp.Or(e.Key, m.Attributes["MessageGroupId"])
	received, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	e.DeliveryCount = max(1, received)
	if sent, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64); err == nil {
		e.EnqueuedAt = time.UnixMilli(sent)
	}
	return e
}

// property is a text, a whole number or bytes.
func property(v types.MessageAttributeValue) any {
	if v.StringValue == nil {
		return v.BinaryValue
	}
	if n, err := strconv.ParseInt(*v.StringValue, 10, 64); err == nil && aws.ToString(v.DataType) == "Number" {
		return n
	}
	return *v.StringValue
}
