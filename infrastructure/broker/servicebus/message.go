package servicebus

import (
	"unicode/utf8"

	"github.com/Azure/go-amqp"

	"feedbox/application/relay"
	"feedbox/infrastructure/broker/internal/publish"
	"feedbox/infrastructure/consumer"
)

const annotationPartitionKey = "x-opt-partition-key"

// idLimit is the longest message id, session id and partition key, in characters
// (Service Bus quotas).
const idLimit = 128

var (
	contentTypeJSON = "application/json"
	specVersion     = any("1.0")
)

// encoder builds AMQP messages. It reuses the memory of the previous message.
type encoder struct {
	message    amqp.Message
	properties amqp.MessageProperties
	data       [1][]byte
}

// encode returns m as an AMQP message, which is valid until the next call.
func (e *encoder) encode(m *relay.Message, source any) *amqp.Message {
	a := &e.message
	if a.Properties == nil {
		a.Properties, a.Data = &e.properties, e.data[:]
		a.Annotations = make(amqp.Annotations, 1)
		a.ApplicationProperties = make(map[string]any, 8)
	}
	e.data[0] = m.Body
	e.properties = amqp.MessageProperties{MessageID: m.ID, ContentType: &contentTypeJSON, Subject: &m.Action, GroupID: &m.Key}
	a.Annotations[annotationPartitionKey] = m.Key
	p := a.ApplicationProperties
	setOrDelete(p, consumer.PropertyTraceparent, m.Traceparent, m.Traceparent != "")
	setOrDelete(p, consumer.PropertySequence, m.Sequence, m.Sequence != 0)
	setOrDelete(p, consumer.PropertyAggregateVersion, m.AggregateVersion, m.AggregateVersion != 0)
	p[publish.PropertySpecVersion] = specVersion
	p[publish.PropertyID] = e.properties.MessageID
	p[publish.PropertySource] = source
	p[publish.PropertyType] = m.Action
	setOrDelete(p, publish.PropertyTime, m.CreatedAt, m.CreatedAt != "")
	return a
}

func setOrDelete[V any](p map[string]any, name string, v V, set bool) {
	if set {
		p[name] = v
	} else {
		delete(p, name)
	}
}

// batch contains messages in the batch format of Service Bus (azservicebus, message_batch.go): an AMQP
// message with one data section per message.
type batch struct {
	max, size int // in bytes
	envelope  amqp.Message
}

const (
	batchFormat     = 0x80013700
	sectionOverhead = 8 // maximum size of a data section without its data
)

// add adds the encoded message m, unless b would exceed its limit.
func (b *batch) add(m *relay.Message, encoded []byte) bool {
	size := b.size + sectionOverhead + len(encoded)
	if len(b.envelope.Data) == 0 {
		size += len(encoded) - len(m.Body) // the envelope repeats some properties of m
	}
	if size > b.max {
		return false
	}
	if len(b.envelope.Data) == 0 {
		b.envelope = amqp.Message{
			Format: batchFormat, Properties: &amqp.MessageProperties{MessageID: m.ID, GroupID: &m.Key},
			Annotations: amqp.Annotations{annotationPartitionKey: m.Key},
		}
	}
	b.size = size
	b.envelope.Data = append(b.envelope.Data, encoded)
	return true
}

// check refuses a message whose ids exceed the limits of the broker.
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
