package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

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

// confirmTimeout bounds the wait for the confirmation of a dead letter. It is below dialTimeout,
// which would end the connection that others use.
const confirmTimeout = 10 * time.Second

// deadLetter stores a copy of m among the group's dead letters, with the reason, and waits for
// the broker to confirm it. To reject m would move it there too, but without the reason.
func (c *Consumer) deadLetter(ctx context.Context, m *amqp.Delivery, letter *consumer.DeadLetterError) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	headers := amqp.Table{}
	maps.Copy(headers, m.Headers)
	delete(headers, headerDeliveryCount)
	headers[HeaderDeadLetterReason], headers[HeaderDeadLetterDescription] = letter.Reason, letter.Description()
	copied := amqp.Publishing{
		MessageId: m.MessageId, Type: m.Type, AppId: m.AppId, Timestamp: m.Timestamp, ContentType: m.ContentType,
		DeliveryMode: amqp.Persistent, Headers: headers, Body: m.Body,
	}
	return c.open(ctx, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }() // what counts is confirmed
		if err := ch.Confirm(false); err != nil {
			return err
		}
		returns := ch.NotifyReturn(make(chan amqp.Return, 1))
		confirmation, err := ch.PublishWithDeferredConfirm("", c.group.deadLetters(), true, false, copied)
		if err != nil {
			return err
		}
		switch taken, err := confirmation.WaitContext(ctx); {
		case err != nil:
			return err
		case !taken:
			return errors.New("the broker did not take the dead letter")
		case len(returns) > 0:
			return fmt.Errorf("there is no queue %q for dead letters; Declare makes it", c.group.deadLetters())
		}
		return nil
	})
}
