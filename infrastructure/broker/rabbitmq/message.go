package rabbitmq

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
)

// Slots is the number of slots of keys. The queues of a group are bound to slots.
const Slots = publish.Slots

// textLimit is the maximum length of a property in bytes (a short string of AMQP 0-9-1).
const textLimit = 255

// headersLimit is the maximum length of the texts in headers. Properties and headers are one frame, and the
// broker closes the connection of all keys if it exceeds its frame_max, 128 KiB by default. A dead letter
// has two headers more.
const headersLimit = 64 << 10

// Slot returns the slot of a key.
func Slot(key string) int { return publish.Slot(key) }

// slotNames are the routing keys.
var slotNames = func() (names [Slots]string) {
	for slot := range names {
		names[slot] = fmt.Sprintf("%02x", slot)
	}
	return names
}()

// HeaderAction is the header with the action of the event. The action is also the type of the message,
// but a headers exchange can only match headers.
const HeaderAction = "action"

// HeaderCreatedAt is the header with the time of creation as stored. The timestamp of a message has
// whole seconds only, which is too coarse to measure the lag of a consumer.
const HeaderCreatedAt = "createdAt"

// publishing encodes m for the client of RabbitMQ.
func publishing(m *relay.Message, source string) amqp.Publishing {
	created, _ := time.Parse(time.RFC3339, m.CreatedAt) // the client omits a zero time
	headers := publish.Properties(m)
	headers[HeaderAction] = m.Action
	if m.CreatedAt != "" {
		headers[HeaderCreatedAt] = m.CreatedAt
	}
	return amqp.Publishing{
		MessageId: m.ID, Type: m.Action, AppId: source, Timestamp: created, ContentType: "application/json",
		DeliveryMode: amqp.Persistent, Headers: headers, Body: m.Body,
	}
}

// check refuses a message that cannot be encoded or exceeds the limit of the broker.
func (p *Publisher) check(m *relay.Message) error {
	if len(m.Body) > p.opts.MaxMessageBytes {
		return relay.Refuse("too_large", "event of %d bytes; a message has at most %d", len(m.Body), p.opts.MaxMessageBytes)
	}
	return checkProperties(m)
}

func checkProperties(m *relay.Message) error {
	switch {
	case len(m.ID) > textLimit:
		return relay.Refuse("id_too_long", "event id of %d bytes; a message id has at most %d", len(m.ID), textLimit)
	case len(m.Action) > textLimit:
		return relay.Refuse("action_too_long", "action of %d bytes; the type of a message has at most %d", len(m.Action), textLimit)
	case len(m.Key)+len(m.CreatedAt)+len(m.Traceparent) > headersLimit:
		return relay.Refuse("headers_too_large", "key, createdAt and traceparent of %d bytes; the headers of a message have at most %d", len(m.Key)+len(m.CreatedAt)+len(m.Traceparent), headersLimit)
	}
	return nil
}
