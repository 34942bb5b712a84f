package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/infrastructure/consumer"
)

// Headers of a dead letter, beside those of the event.
const (
	HeaderDeadLetterReason      = "DeadLetterReason"
	HeaderDeadLetterDescription = "DeadLetterErrorDescription"
)

// headerDeliveryCount says how often a quorum queue has delivered a message in vain.
const headerDeliveryCount = "x-delivery-count"

// deadLetter stores a copy of m among the group's dead letters, with the reason, and waits for
// the broker to confirm it. To reject m would move it there too, but without the reason.
func (c *Consumer) deadLetter(ctx context.Context, m *amqp.Delivery, letter *consumer.DeadLetterError) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := c.client.connect(ctx)
	if err != nil {
		return err
	}
	ch, err := s.Channel()
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }() // what counts is confirmed
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, 1))
	headers := maps.Clone(m.Headers)
	if headers == nil {
		headers = amqp.Table{}
	}
	delete(headers, headerDeliveryCount)
	headers[HeaderDeadLetterReason], headers[HeaderDeadLetterDescription] = letter.Reason, letter.Description()
	confirmation, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", c.group.deadLetters(), true, false, amqp.Publishing{
		MessageId: m.MessageId, Type: m.Type, ContentType: m.ContentType, DeliveryMode: amqp.Persistent, Timestamp: m.Timestamp, Headers: headers, Body: m.Body,
	})
	if err != nil {
		return err
	}
	switch taken, err := confirmation.WaitContext(ctx); {
	case err != nil:
		return err
	case !taken:
		return errors.New("the broker did not take the dead letter")
	}
	select {
	case <-returns:
		return fmt.Errorf("there is no queue %q for dead letters; Declare makes it", c.group.deadLetters())
	default:
		return nil
	}
}
