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
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	headers := amqp.Table{}
	maps.Copy(headers, m.Headers)
	delete(headers, headerDeliveryCount)
	headers[HeaderDeadLetterReason], headers[HeaderDeadLetterDescription] = reason.Reason, reason.Description()
	deadLetter := amqp.Publishing{
		MessageId: m.MessageId, Type: m.Type, AppId: m.AppId, Timestamp: m.Timestamp, ContentType: m.ContentType,
		DeliveryMode: amqp.Persistent, Headers: headers, Body: m.Body,
	}
	return c.open(ctx, func(_ *session, ch *amqp.Channel) error {
		defer func() { _ = ch.Close() }() // the confirmation has arrived, or the call failed
		if err := ch.Confirm(false); err != nil {
			return err
		}
		returns := ch.NotifyReturn(make(chan amqp.Return, 1))
		confirmation, err := ch.PublishWithDeferredConfirm("", c.group.deadLetters(), true, false, deadLetter)
		if err != nil {
			return err
		}
		switch accepted, err := confirmation.WaitContext(ctx); {
		case err != nil:
			return err
		case !accepted:
			return errors.New("the broker refused the dead letter")
		case len(returns) > 0:
			return fmt.Errorf("dead-letter queue %q does not exist: create it with Declare", c.group.deadLetters())
		}
		return nil
	})
}
