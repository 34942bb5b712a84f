package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/internal/handling"
)

// Consumer gives the events of a group to a handler, those of a key in their order. Any number
// of consumers may serve a group; each queue has one at a time.
type Consumer struct {
	client   *Client
	group    Group
	prefetch int
	lanes    *handling.Lanes
	work     *handling.Work

	mu   sync.Mutex   // guards open
	open []*receiving // at the end of Run
}

// ConsumerOptions are the choices of NewConsumer. Zero means the default.
type ConsumerOptions struct {
	consumer.Options
	// Prefetch is how many events of a queue the broker sends ahead, those of waiting keys
	// included: a queue with as many of these waits. It has to be the same for all consumers of
	// a group, or the broker may deliver what one of them left in another order. Default 256.
	Prefetch int
}

// NewConsumer returns a consumer of group, whose queues have to exist (Declare makes them). Of
// group Name and Queues count. It does no I/O. The client stays the caller's; it should be one
// that no publisher uses, since a broker that is full holds up the connections of those.
func NewConsumer(client *Client, group Group, handler consumer.Handler, opts *ConsumerOptions) (*Consumer, error) {
	var o ConsumerOptions
	if opts != nil {
		o = *opts
	}
	c := &Consumer{client: client, prefetch: cmp.Or(o.Prefetch, 256)}
	var wrong, faults error
	c.group, wrong = group.withDefaults()
	if client == nil || c.prefetch < 0 {
		faults = errors.New("give a client, and a Prefetch that is positive")
	}
	var err error
	c.lanes, err = handling.NewLanes(handler, o.Options)
	if err := errors.Join(wrong, faults, err); err != nil {
		return nil, fmt.Errorf("rabbitmq consumer: %w", err)
	}
	c.work = c.lanes.Work()
	return c, nil
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the broker and
// of the handler. Run may be called again after it returned.
func (c *Consumer) Run(ctx context.Context) error {
	c.lanes.Run(ctx, func(ctx, working context.Context) {
		var queues sync.WaitGroup
		for _, queue := range c.group.queues() {
			queues.Go(func() { c.serve(ctx, working, queue) })
		}
		queues.Wait()
	}, func(context.Context) {
		for _, r := range c.open {
			r.end(nil)
		}
		c.open = nil
	})
	return nil
}

// serve receives from a queue until ctx ends, over one channel after the other.
func (c *Consumer) serve(ctx, working context.Context, queue string) {
	for failures := 0; ctx.Err() == nil; {
		r, err := c.receive(ctx, working, queue)
		if err == nil {
			err = r.run(ctx)
			failures = 0
		}
		if ctx.Err() != nil {
			return
		}
		failures++
		c.work.Log.WarnContext(ctx, "receiving failed", "queue", queue, "error", err, "failures", failures)
		timer := time.NewTimer(c.work.Backoff(failures))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// receiving is a channel that receives from one queue. What it has delivered and is not
// acknowledged when it ends, the broker delivers again.
type receiving struct {
	*amqp.Channel
	consumer   *Consumer
	deliveries <-chan amqp.Delivery
	ends       chan *amqp.Error
	life       context.Context //nolint:containedctx // that of the deliveries
	lose       context.CancelCauseFunc
}

// receive begins to receive from a queue.
func (c *Consumer) receive(ctx, working context.Context, queue string) (*receiving, error) {
	s, err := c.client.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer time.AfterFunc(dialTimeout, s.socket.abort).Stop() // the requests below know no context
	ch, err := s.Channel()
	if err != nil {
		return nil, err
	}
	r := &receiving{Channel: ch, consumer: c, ends: ch.NotifyClose(make(chan *amqp.Error, 1))}
	if err = ch.Qos(c.prefetch, 0, false); err == nil {
		r.deliveries, err = ch.Consume(queue, "", false, false, false, false, nil)
	}
	if err != nil {
		_ = ch.Close() // it may have ended for that error
		return nil, err
	}
	r.life, r.lose = context.WithCancelCause(working)
	return r, nil
}

// run hands deliveries on until the channel ends. If ctx does, the channel stays open for what
// is under way, and so does the subscription: another consumer would get later events of a key
// whose handler still runs.
func (r *receiving) run(ctx context.Context) error {
	for {
		select {
		case m, ok := <-r.deliveries:
			if ok {
				r.consumer.lanes.Add(ctx, r.delivery(m))
				continue
			}
			var reason error = amqp.ErrClosed
			select {
			case end := <-r.ends:
				if end != nil {
					reason = end
				}
			default: // the broker has ended the subscription only
			}
			r.end(fmt.Errorf("%w: %w", consumer.ErrLockLost, reason))
			return reason
		case <-ctx.Done():
			r.consumer.mu.Lock()
			defer r.consumer.mu.Unlock()
			r.consumer.open = append(r.consumer.open, r)
			return nil
		}
	}
}

// end closes the channel, after which the broker delivers again what was not acknowledged.
func (r *receiving) end(cause error) {
	r.lose(cause)
	_ = r.Close() // it may have ended already
}

func (r *receiving) delivery(m amqp.Delivery) *handling.Delivery {
	return &handling.Delivery{
		Event: event(&m), Life: r.life,
		Complete: func(out consumer.Outcome) {
			if err := m.Ack(false); err != nil {
				out.Action, out.Err = consumer.Unsettled, errors.Join(out.Err, err)
			}
			r.consumer.work.Observe(r.life, out)
		},
		DeadLetter: func(ctx context.Context, letter *consumer.DeadLetterError) error {
			return r.consumer.deadLetter(ctx, &m, letter)
		},
	}
}

// event reads the event out of a message.
func event(m *amqp.Delivery) *consumer.Event {
	e := &consumer.Event{ID: m.MessageId, Action: m.Type, Body: m.Body, DeliveryCount: 1, Properties: m.Headers}
	e.Key, _ = m.Headers[HeaderKey].(string)
	e.Traceparent, _ = m.Headers[HeaderTraceparent].(string)
	e.Sequence, _ = m.Headers[HeaderSequence].(int64)
	e.AggregateVersion, _ = m.Headers[HeaderAggregateVersion].(int64)
	if before, ok := m.Headers[headerDeliveryCount].(int64); ok {
		e.DeliveryCount += int(before)
	}
	return e
}
