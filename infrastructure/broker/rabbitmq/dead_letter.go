package rabbitmq

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
)

// Headers of a dead letter, in addition to those of the event.
const (
	HeaderDeadLetterReason      = "DeadLetterReason"
	HeaderDeadLetterDescription = "DeadLetterErrorDescription"
)

// headerDeliveryCount is set by quorum queues to the number of earlier, failed deliveries.
const headerDeliveryCount = "x-delivery-count"

// confirmTimeout bounds the wait for the confirmation of a dead letter. It must be below requestTimeout,
// after which Consumer.open aborts the connection that other queues use.
const confirmTimeout = 10 * time.Second

// deadLetter publishes a copy of m with the reason to the dead-letter queue of the group, and waits for
// the confirmation. It does not reject m, because RabbitMQ would dead-letter it without the reason.
func (c *Consumer) deadLetter(ctx context.Context, m *amqp.Delivery, reason *consumer.DeadLetterError) error {
	deadLetter := copyOf(m)
	deadLetter.Headers[HeaderDeadLetterReason], deadLetter.Headers[HeaderDeadLetterDescription] = reason.Code(), reason.Description()
	return c.publish(ctx, c.group.deadLetters(), deadLetter)
}

// publish publishes m to a queue, on a channel of its own, and waits for the confirmation.
func (c *Consumer) publish(ctx context.Context, queue string, m amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	return c.open(ctx, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }() // the confirmation has arrived, or the call failed
		if err := ch.Confirm(false); err != nil {
			return err
		}
		return publishConfirmed(ctx, ch, ch.NotifyReturn(make(chan amqp.Return, 1)), queue, m)
	})
}

// copyOf returns a copy of m without the count of its deliveries.
func copyOf(m *amqp.Delivery) amqp.Publishing {
	headers := amqp.Table{}
	maps.Copy(headers, m.Headers)
	delete(headers, headerDeliveryCount)
	return amqp.Publishing{
		MessageId: m.MessageId, Type: m.Type, AppId: m.AppId, Timestamp: m.Timestamp, ContentType: m.ContentType,
		DeliveryMode: amqp.Persistent, Headers: headers, Body: m.Body,
	}
}

// publishConfirmed publishes m to a queue on a channel in confirm mode. returns has room for a message.
func publishConfirmed(ctx context.Context, ch *amqp.Channel, returns chan amqp.Return, queue string, m amqp.Publishing) error {
	for len(returns) > 0 { // of an earlier message; a full channel would block the connection
		<-returns
	}
	confirmation, err := ch.PublishWithDeferredConfirm("", queue, true, false, m)
	if err != nil {
		return err
	}
	switch accepted, err := confirmation.WaitContext(ctx); {
	case err != nil:
		return err
	case !accepted:
		return errors.New("the broker refused the message")
	case len(returns) > 0:
		return fmt.Errorf("queue %q does not exist: create it with Declare", queue)
	}
	return nil
}

// DeadLetters are the dead-letter queues of groups, for operators. A consumer is the name of a group, or
// NAME:QUEUES if it does not have 8 queues.
//
// RabbitMQ cannot show messages without delivering them. A read gets letters, and its channel is closed
// without acknowledging them. The broker then returns them, maybe to the end of the queue. So the letters
// that Read returns are the oldest ones only if it returns all. A resubmission goes to the queue of its key
// through the default exchange, so other groups do not receive it.
type DeadLetters struct{ client *Client }

var _ relayport.DeadLetters = (*DeadLetters)(nil)

// NewDeadLetters returns the dead-letter queues of the broker of client. It does no I/O.
func NewDeadLetters(client *Client) *DeadLetters { return &DeadLetters{client} }

// Reach implements relayport.DeadLetters.
func (*DeadLetters) Reach(string) string { return "" }

const (
	// lettersTimeout bounds the reading of letters, each of which is a round trip.
	lettersTimeout = time.Minute
	// maxPassed bounds the letters that a claim locks on its way to others.
	maxPassed = 5000
	// maxReads is a number of reads of a letter that is well below the limit of 20 deliveries after which
	// RabbitMQ 4 drops it.
	maxReads = 10
)

// ParseGroup reads a group from NAME or NAME:QUEUES.
func ParseGroup(name string) (Group, error) {
	name, queues, given := strings.Cut(name, ":")
	g := Group{Name: name}
	if given {
		var err error
		if g.Queues, err = strconv.Atoi(queues); err != nil || g.Queues < 1 {
			return g, fmt.Errorf("group %s:%s: give the number of its queues after the colon", name, queues)
		}
	}
	return g.withDefaults()
}

// letterQueue is an open channel with the letters that it has got, in their order.
type letterQueue struct {
	group   Group
	session *session
	channel *amqp.Channel
	returns chan amqp.Return
	letters []relayport.DeadLetter
	got     map[string]amqp.Delivery // by id of letter
}

// open gets letters until enough returns true or there are none left.
func (d *DeadLetters) open(ctx context.Context, consumerName string, enough func(q *letterQueue) bool) (*letterQueue, error) {
	g, err := ParseGroup(consumerName)
	if err != nil {
		return nil, err
	}
	q := &letterQueue{group: g, got: map[string]amqp.Delivery{}}
	err = d.client.open(ctx, lettersTimeout, func(s *session, ch *amqp.Channel) error {
		q.session, q.channel, q.returns = s, ch, ch.NotifyReturn(make(chan amqp.Return, 1))
		if err := ch.Confirm(false); err != nil {
			return err
		}
		for !enough(q) {
			m, ok, err := ch.Get(g.deadLetters(), false)
			if err != nil || !ok {
				return err
			}
			if isWakeUp(m.Type, m.ContentType) { // it has expired, and is no event
				if err := m.Ack(false); err != nil {
					return err
				}
				continue
			}
			l := deadLetterOf(&m)
			for n, id := 2, l.ID; q.got[l.ID].Acknowledger != nil; n++ { // a copy, so it does not matter which one is meant
				l.ID = id + "-" + strconv.Itoa(n)
			}
			q.letters, q.got[l.ID] = append(q.letters, l), m
			if version, _ := s.Properties["version"].(string); limitsDeliveries(version) && l.Deliveries > maxReads {
				if err := g.declareLetters(ctx, d.client, true); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if end, ok := errors.AsType[*amqp.Error](err); ok && end.Code == amqp.NotFound {
		return nil, fmt.Errorf("queue %s: %w: %w", g.deadLetters(), relayport.ErrNoConsumer, err)
	}
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", g.deadLetters(), err)
	}
	return q, nil
}

func deadLetterOf(m *amqp.Delivery) relayport.DeadLetter {
	e := event(m)
	l := relayport.DeadLetter{
		ID: letterID(m), Event: e.ID, Key: e.Key, Action: e.Action, Sequence: e.Sequence, Deliveries: e.DeliveryCount,
		Headers: map[string]string{"message id": m.MessageId}, Body: m.Body,
	}
	l.Reason, _ = m.Headers[HeaderDeadLetterReason].(string)
	l.Description, _ = m.Headers[HeaderDeadLetterDescription].(string)
	if l.Reason == "" {
		l.Reason, _ = m.Headers["x-first-death-reason"].(string) // of the broker
	}
	for name, value := range m.Headers {
		l.Headers[name] = fmt.Sprint(value)
	}
	return l
}

// letterID returns the id of a letter by its content, because several may have the id of one event or none,
// and reads return them in any order. A letter that was resubmitted and has failed again has another id, so
// its next resubmission is another one. The reason is left out, because a repeat must have the same id for
// whichever letter of an event is read first. Headers of the broker change with each read.
func letterID(m *amqp.Delivery) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if !strings.HasPrefix(name, "x-") && name != HeaderDeadLetterReason && name != HeaderDeadLetterDescription {
			_, _ = fmt.Fprintf(sum, "%q %q ", name, fmt.Sprint(m.Headers[name])) // a hash has no errors
		}
	}
	_, _ = fmt.Fprintf(sum, "%q %s", m.Type, m.Body)
	return cmp.Or(m.MessageId, "no-id") + "~" + hex.EncodeToString(sum.Sum(nil)[:6])
}

// Read implements relayport.DeadLetters. It removes wake-ups, which are no letters.
func (d *DeadLetters) Read(ctx context.Context, consumerName string, limit int) ([]relayport.DeadLetter, bool, error) {
	q, err := d.open(ctx, consumerName, func(q *letterQueue) bool { return len(q.letters) > limit })
	if err != nil {
		return nil, false, err
	}
	q.Release(ctx)
	return q.letters[:min(limit, len(q.letters))], len(q.letters) > limit, nil
}

// Claim implements relayport.DeadLetters.
func (d *DeadLetters) Claim(ctx context.Context, consumerName string, ids []string) (relayport.LetterClaim, error) {
	g, err := ParseGroup(consumerName)
	if err == nil {
		err = g.checkCount(ctx, d.client) // a resubmission would go to the wrong queue
	}
	if err != nil {
		return nil, err
	}
	return d.open(ctx, consumerName, func(q *letterQueue) bool {
		return len(q.letters) >= maxPassed || !slices.ContainsFunc(ids, func(id string) bool { return q.got[id].Acknowledger == nil })
	})
}

// bounded runs a request of the channel, which takes no context.
func (q *letterQueue) bounded(ctx context.Context, id string, request func(ctx context.Context, m amqp.Delivery) error) error {
	m, ok := q.got[id]
	if !ok {
		return fmt.Errorf("%s: %w", id, relayport.ErrNoLetter)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errSilent)
	defer cancel()
	defer context.AfterFunc(ctx, q.session.socket.abort)()
	return request(ctx, m)
}

// Resubmit implements relayport.LetterClaim. The message keeps its id, because RabbitMQ detects no
// duplicates.
func (q *letterQueue) Resubmit(ctx context.Context, id string, r relayport.Resubmission) error {
	return q.bounded(ctx, id, func(ctx context.Context, m amqp.Delivery) error {
		slot, known := m.Headers[headerSlot].(int32) // of a packed message
		if key, _ := m.Headers[consumer.PropertyKey].(string); key != "" {
			slot, known = int32(Slot(key)), true //nolint:gosec // below 256
		}
		if !known || slot < 0 || slot >= Slots {
			return errors.New("the letter has no key, so its queue is unknown")
		}
		again := copyOf(&m)
		for name := range again.Headers {
			if name == HeaderDeadLetterReason || name == HeaderDeadLetterDescription || strings.HasPrefix(name, "x-") {
				delete(again.Headers, name)
			}
		}
		again.Headers[consumer.PropertyResubmission] = r.ID
		if r.Body != nil {
			again.Body = r.Body
		}
		return publishConfirmed(ctx, q.channel, q.returns, q.group.queue(int(slot)*q.group.Queues/Slots), again)
	})
}

// Remove implements relayport.LetterClaim. An acknowledgement has no reply, so it waits for that of a later
// request.
func (q *letterQueue) Remove(ctx context.Context, id string) error {
	return q.bounded(ctx, id, func(_ context.Context, m amqp.Delivery) error {
		err := m.Ack(false)
		if err == nil {
			_, err = q.channel.QueueDeclarePassive(q.group.deadLetters(), true, false, false, false, nil)
		}
		if err == nil {
			delete(q.got, id)
		}
		return err
	})
}

// Release implements relayport.LetterClaim. The broker returns the letters of a closed channel.
func (q *letterQueue) Release(context.Context) { q.session.closeChannel(q.channel) }
