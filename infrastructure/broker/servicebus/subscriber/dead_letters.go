package subscriber

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"feedbox/infrastructure/broker/servicebus"
	"feedbox/infrastructure/broker/servicebus/internal/wire"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/relay/relayport"
)

// DeadLetters are the dead-letter queues of the subscriptions of a namespace, for operators. A consumer is
// the name of a subscription of the default topic, or topic/subscription.
//
// Service Bus cannot send to a subscription, so a resubmission goes to the topic, and all subscriptions
// whose rules match receive it. Its message id is new, because the topic drops an id of its duplicate
// window. Properties contain the id of the event, for the inboxes of the other consumers, and the consumer
// that handles it again.
//
// A dead-letter queue has no sessions. A letter is found by receiving all letters before it, which stay
// locked meanwhile.
type DeadLetters struct {
	namespace *wire.Namespace
	topic     string
}

var _ relayport.DeadLetters = (*DeadLetters)(nil)

// NewDeadLetters returns the dead-letter queues of the namespace. It does no I/O.
func NewDeadLetters(cfg servicebus.ClientConfig, topic string) (*DeadLetters, error) {
	namespace, err := wire.NewNamespace(wire.Config(cfg))
	return &DeadLetters{namespace, topic}, err
}

const (
	// letterBatch is the number of letters of one request.
	letterBatch = 200
	// maxPassed bounds the letters that a claim locks on its way to others.
	maxPassed = 5000
	// letterWait is the time without a letter after which a claim is complete. Letters that another
	// reader has locked do not arrive.
	letterWait = 5 * time.Second
)

// source returns the topic and the subscription of a consumer.
func (d *DeadLetters) source(consumerName string) (topic string, source Source) {
	topic, subscription, ok := strings.Cut(consumerName, "/")
	if !ok {
		topic, subscription = d.topic, consumerName
	}
	return topic, Subscription(topic, subscription)
}

// Reach implements relayport.DeadLetters.
func (d *DeadLetters) Reach(consumerName string) string {
	topic, _ := d.source(consumerName)
	return "topic " + topic
}

// open returns a connection for the dead-letter queue of a consumer. Operators need one rarely, so each call
// has its own.
func (d *DeadLetters) open(ctx context.Context, consumerName string) (*connection, error) {
	_, source := d.source(consumerName)
	conn, err := newConnector(d.namespace, source.DeadLetters(), slog.New(slog.DiscardHandler)).Get(ctx)
	if err != nil {
		return nil, failed("open", consumerName, err)
	}
	return conn, nil
}

// failed names the queue of a failed request, and adds the remedy that the consumer would log.
func failed(do, consumerName string, err error) error {
	err = fmt.Errorf("%s the dead letters of %s: %w", do, consumerName, err)
	switch advice := advise(err); advice.Reason {
	case "entity_not_found":
		return fmt.Errorf("%w: %w", relayport.ErrNoConsumer, err)
	case "unauthorized":
		return fmt.Errorf("%w: %s; to resubmit, it also needs Azure Service Bus Data Sender on the topic", err, advice.Next)
	}
	return err
}

// Namespaces are the dead-letter queues of several namespaces by their names. The name of the default one is
// "". A consumer of another one is topic@namespace/subscription.
type Namespaces map[string]*DeadLetters

var _ relayport.DeadLetters = Namespaces{}

// of returns the queues of a consumer's namespace, and the consumer's name in it.
func (n Namespaces) of(consumerName string) (*DeadLetters, string) {
	topic, subscription, _ := strings.Cut(consumerName, "/")
	topic, namespace, _ := strings.Cut(topic, "@")
	if found := n[namespace]; found != nil && namespace != "" {
		return found, topic + "/" + subscription
	}
	return n[""], consumerName
}

// Reach implements relayport.DeadLetters.
func (n Namespaces) Reach(consumerName string) string {
	d, name := n.of(consumerName)
	return d.Reach(name)
}

// Read implements relayport.DeadLetters.
func (n Namespaces) Read(ctx context.Context, consumerName string, limit int) (letters []relayport.DeadLetter, more bool, err error) {
	d, name := n.of(consumerName)
	return d.Read(ctx, name, limit)
}

// Claim implements relayport.DeadLetters.
func (n Namespaces) Claim(ctx context.Context, consumerName string, ids []string) (relayport.LetterClaim, error) {
	d, name := n.of(consumerName)
	return d.Claim(ctx, name, ids)
}

// Read implements relayport.DeadLetters.
func (d *DeadLetters) Read(ctx context.Context, consumerName string, limit int) (letters []relayport.DeadLetter, more bool, err error) {
	conn, err := d.open(ctx, consumerName)
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	for from := int64(0); len(letters) <= limit; {
		response, err := conn.manage(ctx, "", "peek-message", map[string]any{"from-sequence-number": from, "message-count": int32(min(letterBatch, limit+1-len(letters)))})
		if err != nil {
			return nil, false, failed("read", consumerName, err)
		}
		some, _ := response["messages"].([]any) // none after the last letter
		if len(some) == 0 {
			return letters, false, nil
		}
		for _, one := range some {
			entry, _ := one.(map[string]any)
			encoded, _ := entry["message"].([]byte)
			m := &amqp.Message{}
			if err := m.UnmarshalBinary(encoded); err != nil {
				return nil, false, failed("decode", consumerName, err)
			}
			l := letter(m)
			letters = append(letters, l.DeadLetter)
			from = l.number + 1
		}
	}
	return letters[:limit], true, nil
}

type numbered struct {
	relayport.DeadLetter
	number int64 // sequence number of the broker
}

func letter(m *amqp.Message) numbered {
	e := newEvent("", keyOf(m), m)
	l := numbered{relayport.DeadLetter{
		ID: strconv.FormatInt(e.SequenceNumber, 10), Event: e.ID, Key: e.Key, Action: e.Action, Sequence: e.Sequence,
		EnqueuedAt: e.EnqueuedAt, Deliveries: e.DeliveryCount, Body: e.Body, Headers: map[string]string{},
	}, e.SequenceNumber}
	l.Reason, _ = e.Properties[propertyReason].(string)
	l.Description, _ = e.Properties[propertyDescription].(string)
	if m.Properties != nil {
		l.Headers["message id"] = fmt.Sprint(m.Properties.MessageID)
	}
	for name, value := range e.Properties {
		l.Headers[name] = fmt.Sprint(value)
	}
	return l
}

// The properties in which the broker stores the reason of a dead letter.
const propertyReason, propertyDescription = "DeadLetterReason", "DeadLetterErrorDescription"

// letterClaim is a connection with the letters that it has locked.
type letterClaim struct {
	consumer string
	topic    string
	source   Source
	conn     *connection
	link     *link
	sender   *amqp.Sender
	claimed  map[string]*lockedLetter
	passed   []*amqp.Message
}

type lockedLetter struct {
	*amqp.Message
	renewed  time.Time
	duration time.Duration // of its lock
}

// Claim implements relayport.DeadLetters.
func (d *DeadLetters) Claim(ctx context.Context, consumerName string, ids []string) (relayport.LetterClaim, error) {
	conn, err := d.open(ctx, consumerName)
	if err != nil {
		return nil, err
	}
	c := &letterClaim{consumer: consumerName, conn: conn, claimed: map[string]*lockedLetter{}}
	c.topic, c.source = d.source(consumerName)
	if c.link, err = conn.attach(ctx, &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: -1}); err == nil {
		err = c.receive(ctx, ids)
	}
	if err != nil {
		c.Release(ctx)
		return nil, failed("lock", consumerName, err)
	}
	return c, nil
}

// receive locks letters until it has all with these ids, or no further letter arrives.
func (c *letterClaim) receive(ctx context.Context, ids []string) error {
	missing := map[string]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	seen := map[string]bool{}
	for credit := 0; len(missing) > 0; credit-- {
		if credit == 0 {
			if err := c.link.IssueCredit(letterBatch); err != nil {
				return err
			}
			credit = letterBatch
		}
		waiting, cancel := context.WithTimeout(ctx, letterWait)
		m, err := c.link.Receive(waiting, nil)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		id := letter(m).ID
		if missing[id] {
			c.claimed[id] = &lockedLetter{m, time.Now(), lockDuration(m)}
			delete(missing, id)
		} else {
			c.passed = append(c.passed, m)
		}
		switch {
		case seen[id]:
			return errors.New("locks expired before the letters were found: raise the lock duration of the subscription, or settle older letters first")
		case len(c.passed) > maxPassed:
			return fmt.Errorf("more than %d other letters are before them in the queue: settle those first", maxPassed)
		}
		seen[id] = true
	}
	return nil
}

// Resubmit implements relayport.LetterClaim.
func (c *letterClaim) Resubmit(ctx context.Context, id string, r relayport.Resubmission) error {
	l, err := c.locked(ctx, id)
	if err == nil && c.sender == nil {
		err = c.openSender(ctx)
	}
	if err == nil {
		err = c.sender.Send(ctx, resubmitted(l.Message, c.source, r), nil)
	}
	if err != nil {
		return failed("send again", c.consumer, err)
	}
	return nil
}

func (c *letterClaim) openSender(ctx context.Context) error {
	if err := c.conn.Claim(ctx, c.topic); err != nil {
		return err
	}
	_, err := c.conn.Attach(ctx, func(s *amqp.Session) (err error) { // until the connection ends
		c.sender, err = s.NewSender(ctx, c.topic, nil)
		return err
	})
	return err
}

// resubmitted returns a message for the consumer of a source. Its annotations are those of a sender.
func resubmitted(m *amqp.Message, source Source, r relayport.Resubmission) *amqp.Message {
	again := &amqp.Message{Properties: &amqp.MessageProperties{}, ApplicationProperties: map[string]any{}, Data: m.Data, Value: m.Value, Sequence: m.Sequence}
	if m.Properties != nil {
		*again.Properties = *m.Properties
	}
	again.Properties.MessageID, again.Properties.AbsoluteExpiryTime, again.Properties.CreationTime = r.ID, nil, nil
	if key, ok := m.Annotations["x-opt-partition-key"]; ok {
		again.Annotations = amqp.Annotations{"x-opt-partition-key": key}
	}
	maps.Copy(again.ApplicationProperties, m.ApplicationProperties)
	delete(again.ApplicationProperties, propertyReason)
	delete(again.ApplicationProperties, propertyDescription)
	again.ApplicationProperties[consumer.PropertyEventID] = letter(m).Event
	again.ApplicationProperties[consumer.PropertyResubmission] = r.ID
	again.ApplicationProperties[consumer.PropertyResubmittedTo] = string(source)
	if r.Body != nil {
		again.Data, again.Value, again.Sequence = [][]byte{r.Body}, nil, nil
	}
	return again
}

// locked returns a letter of the claim. It renews a lock that it has held for half of its duration, because
// a send takes time.
func (c *letterClaim) locked(ctx context.Context, id string) (*lockedLetter, error) {
	l := c.claimed[id]
	if l == nil {
		return nil, fmt.Errorf("%s: %w", id, relayport.ErrNoLetter)
	}
	if time.Since(l.renewed) > l.duration/2 {
		if err := c.link.renewLock(ctx, l.Message); err != nil {
			return nil, err
		}
		l.renewed = time.Now()
	}
	return l, nil
}

// Remove implements relayport.LetterClaim.
func (c *letterClaim) Remove(ctx context.Context, id string) error {
	l, err := c.locked(ctx, id)
	if err == nil {
		err = c.link.AcceptMessage(ctx, l.Message)
	}
	if err != nil {
		return failed("remove", c.consumer, err)
	}
	delete(c.claimed, id)
	return nil
}

// Release implements relayport.LetterClaim. A lock that it cannot release expires. It drains the credit
// first, because the broker would deliver a released letter to this link again.
func (c *letterClaim) Release(ctx context.Context) {
	defer c.conn.Close()
	ctx, cancel := bounded(ctx)
	defer cancel()
	if c.link == nil || c.link.DrainCredit(ctx, nil) != nil {
		return
	}
	for m := c.link.Prefetched(); m != nil; m = c.link.Prefetched() {
		c.passed = append(c.passed, m)
	}
	for _, l := range c.claimed {
		c.passed = append(c.passed, l.Message)
	}
	var released sync.WaitGroup
	for _, m := range c.passed {
		released.Go(func() { _ = c.link.ReleaseMessage(ctx, m) })
	}
	released.Wait()
}
