package servicebus

import (
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"feedbox/application/relay"
)

// Names of the application properties of a message.
const (
	PropertyTraceparent      = "traceparent"
	PropertySequence         = "sequence"         // long
	PropertyAggregateVersion = "aggregateVersion" // long
	// The attributes of CloudEvents 1.0 in the binary mode of its AMQP binding.
	propertySpecVersion = "cloudEvents_specversion"
	propertyID          = "cloudEvents_id"
	propertySource      = "cloudEvents_source"
	propertyType        = "cloudEvents_type"
	propertyTime        = "cloudEvents_time"
)

const annotationPartitionKey = "x-opt-partition-key"

// idLimit is the longest message id, session id and partition key, in characters
// (Service Bus quotas).
const idLimit = 128

var (
	contentTypeJSON = "application/json"
	specVersion     = any("1.0")
)

// encoder builds the AMQP messages of a batch. The client encodes a message while it
// is added, so one message's memory serves the next; but it keeps the maps of the
// first as the batch's envelope.
type encoder struct{ scratch amqpMessage }

// amqpMessage is a message with the memory of its parts.
type amqpMessage struct {
	azservicebus.AMQPAnnotatedMessage
	properties azservicebus.AMQPAnnotatedMessageProperties
	data       [1][]byte
}

// encode returns m, from source, encoded in memory that the next call uses again, unless it is to be kept.
func (e *encoder) encode(m *relay.Message, source any, kept bool) *azservicebus.AMQPAnnotatedMessage {
	a := &e.scratch
	if kept {
		a = new(amqpMessage)
	}
	a.data[0] = m.Body
	a.properties = azservicebus.AMQPAnnotatedMessageProperties{
		MessageID: m.ID, ContentType: &contentTypeJSON, Subject: &m.Action, GroupID: &m.Key,
	}
	if a.Properties == nil {
		a.Properties = &a.properties
		a.Body.Data = a.data[:]
		a.MessageAnnotations = make(map[any]any, 1)
		a.ApplicationProperties = make(map[string]any, 8)
	}
	a.MessageAnnotations[annotationPartitionKey] = m.Key
	p := a.ApplicationProperties
	setOrDelete(p, PropertyTraceparent, m.Traceparent, m.Traceparent != "")
	setOrDelete(p, PropertySequence, m.Sequence, m.Sequence != 0)
	setOrDelete(p, PropertyAggregateVersion, m.AggregateVersion, m.AggregateVersion != 0)
	p[propertySpecVersion] = specVersion
	p[propertyID] = a.properties.MessageID
	p[propertySource] = source
	p[propertyType] = m.Action
	setOrDelete(p, propertyTime, m.CreatedAt, m.CreatedAt != "")
	return &a.AMQPAnnotatedMessage
}

func setOrDelete[V any](p map[string]any, name string, v V, set bool) {
	if set {
		p[name] = v
	} else {
		delete(p, name)
	}
}

// check refuses a message that the broker would refuse, for a limit that shows without
// sending it.
func check(m *relay.Message) error {
	switch {
	case longerThan(m.ID, idLimit):
		return relay.Refuse("id_too_long", "event id of %d bytes; a message id has at most %d characters", len(m.ID), idLimit)
	case longerThan(m.Key, idLimit):
		return relay.Refuse("key_too_long", "partition key of %d bytes; a session id has at most %d characters", len(m.Key), idLimit)
	}
	return nil
}

func longerThan(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}
