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

// textLimit is the longest text of a property, in bytes.
const textLimit = 255

// Slot returns the slot of a key: the last byte of its FNV-1a hash of 32 bits.
func Slot(key string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash takes everything
	return int(h.Sum32() % Slots)
}

// slotNames are the routing keys.
var slotNames = func() (names [Slots]string) {
	for slot := range names {
		names[slot] = fmt.Sprintf("%02x", slot)
	}
	return names
}()

// publishing returns m as RabbitMQ's client takes it.
func publishing(m *relay.Message, source string) amqp.Publishing {
	headers := amqp.Table{
		HeaderKey: m.Key, headerSpecVersion: "1.0", headerID: m.ID, headerSource: source, headerType: m.Action,
	}
	if m.Traceparent != "" {
		headers[HeaderTraceparent] = m.Traceparent
	}
	if m.CreatedAt != "" {
		headers[headerTime] = m.CreatedAt
	}
	if m.Sequence != 0 {
		headers[HeaderSequence] = m.Sequence
	}
	if m.AggregateVersion != 0 {
		headers[HeaderAggregateVersion] = m.AggregateVersion
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
	case len(m.Action) > textLimit:
		return relay.Refuse("action_too_long", "action of %d bytes; the type of a message has at most %d", len(m.Action), textLimit)
	case len(m.Body) > p.opts.MaxMessageBytes:
		return relay.Refuse("too_large", "event of %d bytes; a message has at most %d", len(m.Body), p.opts.MaxMessageBytes)
	}
	return nil
}
