package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Group is a group of consumers. Each event is delivered to one of them.
type Group struct {
	// Name is the prefix of the names of its queues. Required.
	Name string
	// Queues is the number of queues that share the slots, and so the maximum number of active
	// consumers. Declare refuses to change it: see Changing queues in the documentation of the package.
	// Default 8, at most Slots.
	Queues int
	// DeliveryLimit is the number of deliveries to a handler after which an event whose consumers crashed
	// is dead-lettered (consumer.ReasonDeliveries). The consumer counts in its inbox, which must be
	// durable, and begins after as many deliveries by the broker. Default: no limit.
	DeliveryLimit int
	// MaxBytes bounds the size of a queue. The broker refuses further messages, and the relay
	// retries them. Default: no limit.
	MaxBytes int64
}

func (g Group) queues() []string {
	names := make([]string, g.Queues)
	for i := range names {
		names[i] = g.queue(i)
	}
	return names
}

func (g Group) queue(i int) string { return fmt.Sprintf("%s.%d", g.Name, i) }

func (g Group) deadLetters() string { return g.Name + ".dead-letters" }

func (g Group) withDefaults() (Group, error) {
	g.Queues = cmp.Or(g.Queues, 8)
	if g.Name == "" || g.Queues < 1 || g.Queues > Slots || g.DeliveryLimit < 0 || g.MaxBytes < 0 {
		return g, fmt.Errorf("rabbitmq group %q: it needs a name, 1 to %d queues, and limits that are not negative", g.Name, Slots)
	}
	return g, nil
}

// Declare creates the exchange, and for each group its quorum queues, which have a single active
// consumer, and a dead-letter queue. It does not change existing ones. It fails if they have different
// properties, or if a group has another number of queues.
func Declare(ctx context.Context, c *Client, exchange string, groups ...Group) error {
	return c.open(ctx, declareTimeout, func(s *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }()
		if err := ch.ExchangeDeclare(exchange, amqp.ExchangeDirect, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %q: %w", exchange, err)
		}
		var faults []error
		for _, g := range groups {
			g, err := g.withDefaults()
			if err == nil {
				err = g.checkCount(ctx, c)
			}
			if err == nil {
				version, _ := s.Properties["version"].(string)
				err = g.declareLetters(ctx, c, limitsDeliveries(version))
				if err == nil || errors.Is(err, errLimited) {
					err = g.declare(ch, exchange, version)
				}
			}
			faults = append(faults, err)
		}
		return errors.Join(faults...)
	})
}

// checkCount refuses a group that has another number of queues. Its old bindings would remain, because AMQP
// cannot list them: they deliver events twice, or to queues without a consumer. Queues are declared from
// the last to the first, so a Declare that was interrupted leaves no first queue and can be repeated.
func (g Group) checkCount(ctx context.Context, c *Client) error {
	var found [3]Queue
	for i, n := range [...]int{0, g.Queues - 1, g.Queues} {
		var err error
		if found[i], err = look(ctx, c, g.queue(n)); err != nil {
			return err
		}
	}
	if found[2].Exists || found[0].Exists && !found[1].Exists {
		return fmt.Errorf("rabbitmq group %q has other queues than %q to %q; %s", g.Name, g.queue(0), g.queue(g.Queues-1), replaceQueues)
	}
	return nil
}

// Queue is the state of a queue.
type Queue struct {
	Name                string
	Exists              bool
	Messages, Consumers int // without those that consumers have not acknowledged
}

func look(ctx context.Context, c *Client, name string) (Queue, error) {
	q := Queue{Name: name}
	err := c.open(ctx, requestTimeout, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }()
		found, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		q.Exists, q.Messages, q.Consumers = err == nil, found.Messages, found.Consumers
		return err
	})
	if end, ok := errors.AsType[*amqp.Error](err); ok && end.Code == amqp.NotFound {
		return q, nil
	}
	if err != nil {
		return q, fmt.Errorf("look for queue %q: %w", name, err)
	}
	return q, nil
}

// ErrMoreQueues means that a group has more queues than Group.Queues. Consumers with that number do not receive
// the events of the others.
var ErrMoreQueues = errors.New("the group has more queues than Group.Queues: correct that in all its consumers, or delete the queue if it is not bound")

// checkMore returns ErrMoreQueues with the name of the first queue above g.Queues if there is one.
func (g Group) checkMore(ctx context.Context, c *Client) error {
	q, err := look(ctx, c, g.queue(g.Queues))
	if err == nil && q.Exists {
		err = fmt.Errorf("queue %s exists: %w", q.Name, ErrMoreQueues)
	}
	return err
}

// Inspect returns the queues of a group and its dead-letter queue, which is the last. A queue that does not
// exist receives no events, although the events of its slots count as sent if another group is bound to
// them. With ErrMoreQueues, the others are returned as well. Inspect does not see a binding that was removed,
// because AMQP cannot list bindings. It changes nothing.
func Inspect(ctx context.Context, c *Client, g Group) ([]Queue, error) {
	g, err := g.withDefaults()
	if err != nil {
		return nil, err
	}
	var found []Queue
	for _, name := range append(g.queues(), g.deadLetters()) {
		q, err := look(ctx, c, name)
		if err != nil {
			return nil, err
		}
		found = append(found, q)
	}
	return found, g.checkMore(ctx, c)
}

// Check returns an error if the exchange does not exist or must not be used. The error is a
// *relay.Error, or the cause of ctx. Check changes nothing.
func Check(ctx context.Context, c *Client, exchange string) error {
	var refused error
	err := c.open(ctx, requestTimeout, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }()
		refused = ch.ExchangeDeclarePassive(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
		return refused
	})
	if end, ok := errors.AsType[*amqp.Error](refused); ok {
		return channelError(end, 1)
	}
	if err != nil {
		return openError(ctx, err)
	}
	return nil
}

// replaceQueues is the advice for queues that cannot be changed.
const replaceQueues = "replace the queues as described in Changing queues of the package's documentation"

// limitsDeliveries reports whether a broker of this version limits the deliveries of quorum queues that are
// declared without a limit, to 20. Earlier ones do not, and refuse a negative limit.
func limitsDeliveries(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 4
}

// declareLetters creates the dead-letter queue, on RabbitMQ 4 without the limit of deliveries, because each
// read of an operator is a delivery. One that an earlier version has created keeps its limit (DeadLetters).
func (g Group) declareLetters(ctx context.Context, c *Client, unlimited bool) error {
	args := amqp.Table{"x-queue-type": "quorum"}
	if unlimited {
		args["x-delivery-limit"] = int32(-1)
	}
	err := c.open(ctx, requestTimeout, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }()
		_, err := ch.QueueDeclare(g.deadLetters(), true, false, false, false, args)
		return err
	})
	if end, ok := errors.AsType[*amqp.Error](err); ok && end.Code == amqp.PreconditionFailed && unlimited {
		return errLimited
	}
	if err != nil {
		return fmt.Errorf("declare queue %q: %w", g.deadLetters(), err)
	}
	return nil
}

// errLimited means that the dead-letter queue has a limit of deliveries, or another type.
var errLimited = errors.New("the dead-letter queue has a limit of deliveries, after which RabbitMQ drops a letter that was only read: move its letters to a queue with x-delivery-limit -1")

func (g Group) declare(ch *amqp.Channel, exchange, version string) error {
	args := amqp.Table{
		"x-queue-type": "quorum", "x-single-active-consumer": true,
		// A full queue refuses new messages, and the relay retries them. By default it would drop
		// the oldest.
		"x-overflow": "reject-publish", "x-dead-letter-strategy": "at-least-once",
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": g.deadLetters(),
	}
	if limitsDeliveries(version) {
		args["x-delivery-limit"] = int32(-1) // no limit; see Consumers that crash in the documentation of the package
	}
	if g.MaxBytes > 0 {
		args["x-max-length-bytes"] = g.MaxBytes
	}
	queues := g.queues()
	for _, name := range slices.Backward(queues) {
		if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
			return fmt.Errorf("declare queue %q: %w; if it has other arguments, for example of an earlier version, %s", name, err, replaceQueues)
		}
	}
	for slot := range Slots {
		if err := ch.QueueBind(queues[slot*g.Queues/Slots], slotNames[slot], exchange, false, nil); err != nil {
			return fmt.Errorf("bind slot %02x of group %q: %w", slot, g.Name, err)
		}
	}
	return nil
}
