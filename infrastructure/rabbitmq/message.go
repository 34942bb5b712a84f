package rabbitmq

import (
	"fmt"
	"hash/fnv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"feedbox/application/relay"
)

// Names of the headers of a message. Those of CloudEvents 1.0 have the prefix that its binding
// for AMQP gives them, so that they are the same as on Service Bus.
const (
	HeaderKey              = "partitionKey"
	HeaderTraceparent      = "traceparent"
	HeaderSequence         = "sequence"         // a long
	HeaderAggregateVersion = "aggregateVersion" // a long
	headerSpecVersion      = "cloudEvents_specversion"
	headerID               = "cloudEvents_id"
	headerSource           = "cloudEvents_source"
	headerType             = "cloudEvents_type"
	headerTime             = "cloudEvents_time"
)

// Slots is how many slots keys are spread over. It never changes.
const Slots = 256

// textLimit is the longest text of a property or a routing key, in bytes.
const textLimit = 255

// Slot returns the slot of a key: the last byte of its FNV-1a hash of 32 bits.
func Slot(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return int(h.Sum32() % Slots)
}

// routingKey is the slot of the key and the action.
func routingKey(m *relay.Message) string { return fmt.Sprintf("%02x.%s", Slot(m.Key), m.Action) }

// publishing returns m as RabbitMQ's client takes it.
func publishing(m *relay.Message, source string) amqp.Publishing {
	headers := amqp.Table{
		HeaderKey: m.Key, headerSpecVersion: "1.0", headerID: m.ID, headerSource: source, headerType: m.Action,
	}
	for name, text := range map[string]string{HeaderTraceparent: m.Traceparent, headerTime: m.CreatedAt} {
		if text != "" {
			headers[name] = text
		}
	}
	for name, number := range map[string]int64{HeaderSequence: m.Sequence, HeaderAggregateVersion: m.AggregateVersion} {
		if number != 0 {
			headers[name] = number
		}
	}
	created, _ := time.Parse(time.RFC3339, m.CreatedAt) // the zero time is left out
	return amqp.Publishing{
		MessageId: m.ID, Type: m.Action, ContentType: "application/json", DeliveryMode: amqp.Persistent,
		Timestamp: created, Headers: headers, Body: m.Body,
	}
}

// check refuses a message that cannot be told to the broker.
func (p *Publisher) check(m *relay.Message) error {
	switch {
	case len(m.ID) > textLimit:
		return relay.Refuse("id_too_long", "event id of %d bytes; a message id has at most %d", len(m.ID), textLimit)
	case len(m.Action)+3 > textLimit:
		return relay.Refuse("action_too_long", "action of %d bytes; with the slot a routing key has at most %d", len(m.Action), textLimit)
	case len(m.Body) > p.opts.MaxMessageBytes:
		return relay.Refuse("too_large", "event of %d bytes; a message has at most %d", len(m.Body), p.opts.MaxMessageBytes)
	}
	return nil
}
