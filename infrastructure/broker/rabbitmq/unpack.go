package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
	"feedbox/infrastructure/consumer/cloudevents"
	"feedbox/infrastructure/consumer/handling"
)

// maxUnpacked bounds the events of a message that is read. It is above maxPackedEvents, because a later
// version of the publisher may pack more.
const maxUnpacked = 1000

// Unpack returns the events of m, each in the form in which it would have come alone: m itself, or those of a
// packed message (PublisherOptions.PackKeys). Consumer calls it; other programs that receive from RabbitMQ can
// do so. m is to be acknowledged once, after all its events were handled.
func Unpack(m *amqp.Delivery) ([]amqp.Delivery, error) {
	if kind, _, _ := strings.Cut(m.ContentType, ";"); kind != cloudevents.TypeBatch {
		return []amqp.Delivery{*m}, nil
	}
	events, err := cloudevents.ReadBatch(m.Body, maxUnpacked)
	if err != nil {
		return nil, err
	}
	all := make([]amqp.Delivery, len(events))
	for i := range events {
		if all[i], err = alone(m, &events[i]); err != nil {
			return nil, fmt.Errorf("event %d of the batch: %w", i+1, err)
		}
	}
	return all, nil
}

// alone returns e as a message. Headers of the broker are those of m: each event has the deliveries of m. If an
// operator has sent m again, each event has a resubmission of its own, because each needs a mark in the inbox.
// An event that could not be a message is refused, because it could not be dead-lettered either.
func alone(m *amqp.Delivery, e *cloudevents.Event) (amqp.Delivery, error) {
	sent := relay.Message{
		ID: e.ID, Key: e.Key, Action: e.Type, Body: e.Data, Sequence: e.Sequence, AggregateVersion: e.AggregateVersion,
		CreatedAt: e.Time, Traceparent: e.Traceparent,
	}
	if err := checkProperties(&sent); err != nil {
		return amqp.Delivery{}, err
	}
	if len(e.Source) > textLimit {
		return amqp.Delivery{}, fmt.Errorf("source of %d bytes; an app id has at most %d", len(e.Source), textLimit)
	}
	p := publishing(&sent, e.Source)
	for name, value := range m.Headers {
		if strings.HasPrefix(name, "x-") {
			p.Headers[name] = value
		}
	}
	if id, ok := m.Headers[consumer.PropertyResubmission].(string); ok {
		p.Headers[consumer.PropertyResubmission] = id + "/" + e.ID
	}
	one := *m
	one.MessageId, one.Type, one.AppId, one.Timestamp, one.ContentType, one.Headers, one.Body = p.MessageId, p.Type, p.AppId, p.Timestamp, p.ContentType, p.Headers, p.Body
	return one, nil
}

// undecodable returns why a packed message becomes a dead letter.
func undecodable(err error) *consumer.DeadLetterError {
	return &consumer.DeadLetterError{Reason: consumer.ReasonUndecodable, Err: fmt.Errorf("no event of this packed message was handled: %w; correct its body and send it again with feedbox deadletters edit", err)}
}

// taken counts the events of a channel that were passed to the dispatcher and are not settled.
type taken struct {
	events atomic.Int64
	limit  int64
	room   chan struct{} // has room for a message; written when there are fewer events than limit again
}

// settle removes an event. The receiver alone adds events, so it misses no passage of the limit.
func (t *taken) settle() {
	if t.events.Add(-1) == t.limit-1 {
		select {
		case t.room <- struct{}{}:
		default:
		}
	}
}

// take passes the events of m to the dispatcher, in their order. m is acknowledged when the last of them is
// settled, and that event has the result of the acknowledgement.
func (r *queueReceiver) take(ctx context.Context, m *amqp.Delivery) {
	events, err := Unpack(m)
	if err != nil {
		events = []amqp.Delivery{*m}
	}
	unsettled := new(atomic.Int64)
	unsettled.Store(int64(len(events)))
	r.taken.events.Add(int64(len(events)))
	for i := range events {
		d := r.delivery(&events[i], unsettled)
		if err != nil {
			d.Refused = undecodable(err)
		}
		r.dispatcher.Add(ctx, d)
	}
}

// delivery returns an event with the context of its channel.
func (r *queueReceiver) delivery(m *amqp.Delivery, unsettled *atomic.Int64) *handling.Delivery {
	owned, count := r.owned, r.taken
	return &handling.Delivery{
		Event: event(m), Context: owned, WakeUp: isWakeUp(m.Type, m.ContentType),
		Complete: func(out consumer.Outcome) {
			var err error
			if unsettled.Add(-1) == 0 {
				err = m.Ack(false)
			}
			count.settle()
			r.dispatcher.Settled(owned, out, err)
		},
		DeadLetter: func(ctx context.Context, reason *consumer.DeadLetterError) error {
			return r.deadLetter(ctx, m, reason)
		},
	}
}
