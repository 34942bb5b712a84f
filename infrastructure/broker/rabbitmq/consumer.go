package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/handling"
)

// Consumer passes the events of a group to a handler, in the order of their keys. A group may have any
// number of consumers; each queue has one active consumer at a time.
type Consumer struct {
	client     *Client
	group      Group
	prefetch   int
	dispatcher *handling.Dispatcher
}

// ConsumerOptions are the options of NewConsumer. Zero means the default.
type ConsumerOptions struct {
	consumer.Options
	// Prefetch is the number of unsettled events of a queue, and of unacknowledged messages that the broker
	// sends. A message has one event, or several if the publisher packs them (PublisherOptions.PackKeys): the
	// consumer takes up another message while it has fewer events. Prefetch includes events of keys in backoff,
	// so a queue stops if all of them wait. All consumers of a group must use the same value, and it may be
	// lowered only while their queues are empty, otherwise the broker may redeliver events in a different order.
	// Slow handlers and packed messages need a lower one (Slow handlers in the documentation of the package).
	// Default 256, at most 65535.
	Prefetch int
}

// NewConsumer returns a consumer of group, whose queues must exist (see Declare). It uses Name,
// Queues and DeliveryLimit of group. It does no I/O and does not close the client. Do not share the
// client with a publisher, because a broker short of memory or disk blocks the connections of
// publishers.
func NewConsumer(client *Client, group Group, handler consumer.Handler, opts *ConsumerOptions) (*Consumer, error) {
	o := cmp.Or(opts, &ConsumerOptions{})
	c := &Consumer{client: client, prefetch: cmp.Or(o.Prefetch, 256)}
	var faults [3]error
	c.group, faults[0] = group.withDefaults()
	if client == nil || c.prefetch < 0 || c.prefetch > math.MaxUint16 { // AMQP would send the low 16 bits; 0 is no limit
		faults[1] = errors.New("a client and a Prefetch of 1 to 65535 are required")
	}
	source := handling.Source{System: "rabbitmq", Destination: c.group.Name}
	c.dispatcher, faults[2] = handling.NewDispatcher(source, advise, handler, o.Options)
	if err := errors.Join(faults[:]...); err != nil {
		return nil, fmt.Errorf("rabbitmq consumer: %w", err)
	}
	c.dispatcher.LimitDeliveries(c.group.DeliveryLimit)
	c.dispatcher.WakeBy(c.wake)
	if c.group.DeliveryLimit > 0 && o.Inbox == nil {
		c.dispatcher.Log().Warn("deliveries are counted in memory only: DeliveryLimit needs a durable inbox", "group", c.group.Name)
	}
	return c, nil
}

// Run receives events until ctx ends, then drains and returns nil. It retries after failures of the
// broker and of the handler. Run may be called again after it has returned.
func (c *Consumer) Run(ctx context.Context) error {
	if c == nil || c.dispatcher == nil {
		return errors.New("rabbitmq: the Consumer is not made by NewConsumer")
	}
	var queues []*queueReceiver
	var receivers []handling.Receiver
	for _, queue := range c.group.queues() {
		r := &queueReceiver{Consumer: c, queue: queue}
		queues, receivers = append(queues, r), append(receivers, r.receive)
	}
	c.dispatcher.Run(ctx, receivers, func(context.Context) {
		for _, r := range queues {
			r.end()
		}
	})
	return nil
}

// open opens a channel. If ctx ends meanwhile, open continues until requestTimeout, because to abort it
// would close the connection and with it the other channels.
func (c *Consumer) open(ctx context.Context, prepare func(s *session, ch *amqp.Channel) error) error {
	if _, err := c.client.connect(ctx); err != nil {
		return err
	}
	return c.client.open(context.WithoutCancel(ctx), requestTimeout, prepare)
}

// queueReceiver receives from a queue on one channel at a time. If the channel ends, the broker
// redelivers its unacknowledged events.
type queueReceiver struct {
	*Consumer
	queue      string
	counted    bool // the queues of the group
	session    *session
	channel    *amqp.Channel // nil: none is open
	deliveries <-chan amqp.Delivery
	ends       chan *amqp.Error
	owned      context.Context //nolint:containedctx // ends with the channel
	lose       context.CancelCauseFunc
	waiting    []amqp.Delivery // received and not taken up
	taken      *taken          // of the channel
	draining   sync.WaitGroup  // the goroutine of drain
}

// receive subscribes to the queue, or dispatches deliveries until the subscription ends. It leaves the
// subscription open if ctx ends, because another consumer would otherwise receive later events of a
// key whose handler still runs.
func (r *queueReceiver) receive(ctx, working context.Context) error {
	if r.channel == nil {
		return r.subscribe(ctx, working)
	}
	for {
		for ; len(r.waiting) > 0 && r.taken.events.Load() < int64(r.prefetch); r.waiting = r.waiting[1:] {
			r.take(ctx, &r.waiting[0])
		}
		select {
		case m, ok := <-r.deliveries:
			if !ok {
				defer r.end()
				return r.lost()
			}
			r.waiting = append(r.waiting, m)
		case <-r.taken.room:
		case <-ctx.Done():
			r.draining.Go(r.drain)
			return nil
		}
	}
}

// drain waits until the subscription ends, and then ends the handlers that still run. Otherwise they would run at
// the same time as those of the next consumer of their events, and an event that fails only here would become a
// dead letter. Messages that arrive during the drain are not taken up, and the broker redelivers them.
func (r *queueReceiver) drain() {
	for range r.deliveries {
		continue
	}
	_ = r.lost() // has no effect if end closes the channel
}

func (r *queueReceiver) subscribe(ctx, working context.Context) error {
	err := r.open(ctx, func(s *session, ch *amqp.Channel) (err error) {
		r.ends = ch.NotifyClose(make(chan *amqp.Error, 1))
		if err = ch.Qos(r.prefetch, 0, false); err == nil {
			r.deliveries, err = ch.Consume(r.queue, "", false, false, false, false, nil)
		}
		r.session, r.channel = s, ch
		return err
	})
	if err != nil {
		r.channel = nil
		return fmt.Errorf("queue %s: %w", r.queue, err)
	}
	r.owned, r.lose = context.WithCancelCause(working)
	r.waiting, r.taken = nil, &taken{limit: int64(r.prefetch), room: make(chan struct{}, 1)}
	if r.queue == r.group.queue(0) && !r.counted { // the events of a forgotten queue would wait without an error
		err := r.group.checkMore(context.WithoutCancel(ctx), r.client)
		r.counted = err == nil || errors.Is(err, ErrMoreQueues)
		if errors.Is(err, ErrMoreQueues) {
			r.dispatcher.Log().ErrorContext(ctx, "not all queues of the group are received from", "group", r.group.Name, "error", err)
		}
	}
	return nil
}

// lost ends the handlers of a subscription that has ended, closes its channel, and returns the reason. It does not
// wait for the handlers, because if only the subscription was canceled, the broker redelivers the events of the
// channel after its close, and may deliver later events of their keys before.
func (r *queueReceiver) lost() error {
	var reason error = amqp.ErrClosed
	select {
	case end := <-r.ends:
		if end != nil {
			reason = end
		}
	default: // the broker has canceled the subscription only
	}
	r.lose(fmt.Errorf("%w: %w", consumer.ErrLockLost, reason))
	r.session.closeChannel(r.channel)
	return fmt.Errorf("queue %s: %w", r.queue, reason)
}

// end closes the channel. The broker then redelivers unacknowledged events.
func (r *queueReceiver) end() {
	if r.channel != nil {
		r.lose(nil)
		r.session.closeChannel(r.channel)
		r.draining.Wait() // it reads the channel
		r.channel = nil
	}
}

// typeWakeUp is the type of a message that is no event. Every consumer of a group finds the intents of
// operators, but only the active one of a queue may carry them out. RabbitMQ does not say which one that
// is: it is the one that receives the message.
const typeWakeUp = "feedbox.wakeUp"

// isWakeUp reports whether a message is a wake-up. Events have a content type, and may have any action.
func isWakeUp(kind, contentType string) bool { return kind == typeWakeUp && contentType == "" }

// wake sends a message to the queue of key. It expires, because another process or a later poll sends one too.
func (c *Consumer) wake(ctx context.Context, key string) error {
	return c.publish(ctx, c.group.queue(Slot(key)*c.group.Queues/Slots), amqp.Publishing{
		Type: typeWakeUp, DeliveryMode: amqp.Transient, Expiration: wakeUpExpiry, Headers: amqp.Table{consumer.PropertyKey: key},
	})
}

const wakeUpExpiry = "60000" // ms

// advise returns what to do about the end of a channel or a connection.
func advise(err error) handling.Advice {
	end, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		return handling.Advice{}
	}
	switch end.Code {
	case amqp.NotFound:
		return handling.Advice{Reason: "queue_not_found", Next: "correct Group.Name and Group.Queues, or create the queues with rabbitmq.Declare"}
	case amqp.AccessRefused:
		return handling.Advice{Reason: "access_refused", Next: "correct the user and the password, and permit the user to read the queues and to write to the dead-letter queue"}
	case amqp.PreconditionFailed:
		return handling.Advice{Reason: "unacknowledged_too_long", Next: "none if it is rare: the consumer connects again; otherwise raise consumer_timeout of the broker, or lower Prefetch while the queues are empty"}
	case amqp.NotAllowed:
		return handling.Advice{Reason: "not_allowed", Next: "correct the virtual host of the URL, or permit the user to access it"}
	}
	return handling.Advice{Reason: "connection_lost", Next: "none: the consumer connects again"}
}

func event(m *amqp.Delivery) *consumer.Event {
	e := &consumer.Event{ID: m.MessageId, Action: m.Type, Body: m.Body, DeliveryCount: 1, Properties: m.Headers}
	handling.ReadProperties(e)
	handling.ReadCreation(e, m.Headers[HeaderCreatedAt])
	e.Resubmission, _ = m.Headers[consumer.PropertyResubmission].(string)
	if failed, ok := m.Headers[headerDeliveryCount].(int64); ok {
		e.DeliveryCount += int(failed)
	}
	return e
}
