package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/internal/handling"
)

// Consumer gives the events of a FIFO queue to a handler, those of a key in their order. Any
// number of consumers may serve a queue.
type Consumer struct {
	client *sqs.Client
	queue  string
	opts   ConsumerOptions
	lanes  *handling.Lanes
	work   *handling.Work

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
	c := &Consumer{client: client, queue: queueURL}
	if opts != nil {
		c.opts = *opts
	}
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
	if c.lanes, err = handling.NewLanes(handler, o.Options); err != nil || faults != nil {
		return nil, fmt.Errorf("sqs consumer: %w", errors.Join(append(faults, err)...))
	}
	c.work = c.lanes.Work()
	return c, nil
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the service and
// of the handler. Run may be called again after it returned.
func (c *Consumer) Run(ctx context.Context) error {
	r := &reception{Consumer: c, held: make(map[*held]bool), settled: make(chan settled, c.opts.Held)}
	r.less.L = &r.mu
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { r.keep(keeping) })
	for range c.opts.Receivers {
		beside.Go(func() { r.delete(keeping) })
	}
	c.lanes.Run(ctx, func(ctx, working context.Context) {
		defer context.AfterFunc(ctx, func() { r.release(0) })() // reserve waits for no context
		var receivers sync.WaitGroup
		for range c.opts.Receivers {
			receivers.Go(func() { r.receive(ctx, working) })
		}
		receivers.Wait()
	}, func(ctx context.Context) {
		close(r.settled)
		stop()
		beside.Wait()
		r.giveBack(ctx)
	})
	return nil
}

// receive takes events from the queue until ctx ends.
func (r *reception) receive(ctx, working context.Context) {
	for failures := 0; r.reserve(ctx); {
		answer, err := r.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &r.queue, MaxNumberOfMessages: perRequest, WaitTimeSeconds: seconds(r.opts.Wait), VisibilityTimeout: seconds(r.opts.Visibility),
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			r.release(perRequest)
			if ctx.Err() != nil {
				return
			}
			failures++
			r.work.Log.WarnContext(ctx, "receiving failed", "queue", r.queue, "error", err, "failures", failures)
			timer := time.NewTimer(r.work.Backoff(failures))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
			}
			continue
		}
		failures = 0
		r.release(perRequest - len(answer.Messages))
		for i := range answer.Messages {
			r.lanes.Add(ctx, r.hold(working, &answer.Messages[i]))
		}
	}
}

// delete deletes what is settled, as many at a time as there are, until there will be no more.
func (r *reception) delete(ctx context.Context) {
	for first := range r.settled {
		batch := []settled{first}
		for more := true; more && len(batch) < perRequest; {
			select {
			case next, ok := <-r.settled:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for i, s := range batch {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: number(i), ReceiptHandle: s.message.ReceiptHandle}
		}
		failed := r.ask(ctx, len(batch), func(ctx context.Context) ([]types.BatchResultErrorEntry, error) {
			answer, err := r.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.queue, Entries: entries})
			if err != nil {
				return nil, err
			}
			return answer.Failed, nil
		})
		for i, s := range batch {
			if failed[i] != nil {
				s.out.Action, s.out.Err = consumer.Unsettled, errors.Join(s.out.Err, failed[i])
			}
			r.work.Observe(s.life, s.out)
			r.drop(s.held, nil)
		}
	}
}
