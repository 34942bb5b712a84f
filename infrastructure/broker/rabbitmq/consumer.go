package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Consumer gives the events of a group to a handler, those of a key in their order. Any number
// of consumers may serve a group; each queue has one at a time.
type Consumer struct {
	client     *Client
	group      Group
	prefetch   int
	dispatcher *handling.Dispatcher
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
	o := cmp.Or(opts, &ConsumerOptions{})
	c := &Consumer{client: client, prefetch: cmp.Or(o.Prefetch, 256)}
	var faults [3]error
	c.group, faults[0] = group.withDefaults()
	if client == nil || c.prefetch < 0 {
		faults[1] = errors.New("give a client, and a Prefetch that is positive")
	}
	c.dispatcher, faults[2] = handling.NewDispatcher(handler, o.Options)
	if err := errors.Join(faults[:]...); err != nil {
		return nil, fmt.Errorf("rabbitmq consumer: %w", err)
	}
	return c, nil
}

// Run receives until ctx ends, drains and returns nil. It survives failures of the broker and
// of the handler. Run may be called again after it returned.
func (c *Consumer) Run(ctx context.Context) error {
	var all []*receiving
	var receivers []handling.Receiver
	for _, queue := range c.group.queues() {
		r := &receiving{Consumer: c, queue: queue}
		all, receivers = append(all, r), append(receivers, r.receive)
	}
	c.dispatcher.Run(ctx, receivers, func(context.Context) {
		for _, r := range all {
			r.end(nil)
		}
	})
	return nil
}

// open opens a channel of the consumer. If ctx ends then, the others of its connection go on.
func (c *Consumer) open(ctx context.Context, prepare func(s *session, ch *amqp.Channel) error) error {
	if _, err := c.client.connect(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	return c.client.open(ctx, prepare)
}

// receiving receives from a queue, over one channel after the other. What a channel has delivered
// and is not acknowledged when it ends, the broker delivers again.
type receiving struct {
	*Consumer
	queue      string
	channel    *amqp.Channel // nil: none is open
	deliveries <-chan amqp.Delivery
	ends       chan *amqp.Error
	life       context.Context //nolint:containedctx // that of the channel's deliveries
	lose       context.CancelCauseFunc
}

// receive subscribes to the queue, or hands on what comes until the subscription ends. If ctx
// does, it stays for what is under way: another consumer would get later events of a key whose
// handler still runs.
func (r *receiving) receive(ctx, working context.Context) error {
	if r.channel == nil {
		return r.subscribe(ctx, working)
	}
	for {
		select {
		case m, ok := <-r.deliveries:
			if !ok {
				return r.lost()
			}
			r.dispatcher.Add(ctx, r.delivery(r.life, m))
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *receiving) subscribe(ctx, working context.Context) error {
	err := r.open(ctx, func(_ *session, ch *amqp.Channel) (err error) {
		r.ends = ch.NotifyClose(make(chan *amqp.Error, 1))
		if err = ch.Qos(r.prefetch, 0, false); err == nil {
			r.deliveries, err = ch.Consume(r.queue, "", false, false, false, false, nil)
		}
		r.channel = ch
		return err
	})
	if err != nil {
		r.channel = nil
		return fmt.Errorf("queue %s: %w", r.queue, err)
	}
	r.life, r.lose = context.WithCancelCause(working)
	return nil
}

// lost ends a channel whose subscription has ended, and returns why.
func (r *receiving) lost() error {
	var reason error = amqp.ErrClosed
	select {
	case end := <-r.ends:
		if end != nil {
			reason = end
		}
	default: // the broker has ended the subscription only
	}
	r.end(fmt.Errorf("%w: %w", consumer.ErrLockLost, reason))
	return fmt.Errorf("queue %s: %w", r.queue, reason)
}

// end closes the channel, after which the broker delivers again what was not acknowledged.
func (r *receiving) end(cause error) {
	if r.channel != nil {
		r.lose(cause)
		_ = r.channel.Close() // it may have ended already
		r.channel = nil
	}
}

// delivery is m, of a channel with that life.
func (r *receiving) delivery(life context.Context, m amqp.Delivery) *handling.Delivery {
	return &handling.Delivery{
		Event: event(&m), Context: life,
		Complete: func(out consumer.Outcome) { r.dispatcher.Settled(life, out, m.Ack(false)) },
		DeadLetter: func(ctx context.Context, letter *consumer.DeadLetterError) error {
			return r.deadLetter(ctx, &m, letter)
		},
	}
}

// event reads the event out of a message.
func event(m *amqp.Delivery) *consumer.Event {
	e := &consumer.Event{ID: m.MessageId, Action: m.Type, Body: m.Body, DeliveryCount: 1, Properties: m.Headers}
	handling.ReadProperties(e)
	if before, ok := m.Headers[headerDeliveryCount].(int64); ok {
		e.DeliveryCount += int(before)
	}
	return e
}
