package handling

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"feedbox/application/relay"
	"feedbox/infrastructure/consumer"
)

// ReadProperties copies the properties that the relay has set on a message to fields of the event.
func ReadProperties(e *consumer.Event) {
	e.Key, _ = e.Properties[consumer.PropertyKey].(string)
	e.Traceparent, _ = e.Properties[consumer.PropertyTraceparent].(string)
	e.Sequence = integer(e.Properties[consumer.PropertySequence])
	e.AggregateVersion = integer(e.Properties[consumer.PropertyAggregateVersion])
}

// ReadCreation sets the time of creation, from the value of the property that the broker uses for it.
func ReadCreation(e *consumer.Event, property any) {
	text, _ := property.(string)
	e.CreatedAt, _ = time.Parse(time.RFC3339, text) // zero if it is unknown
}

// integer converts an integer of any width, and returns 0 for anything else. The widths differ
// because AMQP clients encode small numbers in fewer bytes.
func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case uint32:
		return int64(n)
	case uint16:
		return int64(n)
	case uint8:
		return int64(n)
	case int:
		return int64(n)
	}
	return 0
}

// parkedEvent is the stored form of an event of a consumer. A body that is JSON is stored as such, so
// that an operator can read it, unless JSON would change its bytes.
type parkedEvent struct {
	ID               string          `json:"id"`
	Key              string          `json:"key"`
	Action           string          `json:"action,omitempty"`
	Sequence         int64           `json:"sequence,omitempty"`
	AggregateVersion int64           `json:"aggregateVersion,omitempty"`
	Traceparent      string          `json:"traceparent,omitempty"`
	CreatedAt        time.Time       `json:"createdAt,omitzero"`
	EnqueuedAt       time.Time       `json:"enqueuedAt,omitzero"`
	SequenceNumber   int64           `json:"sequenceNumber,omitempty"`
	Properties       map[string]any  `json:"properties,omitempty"`
	Replaced         int64           `json:"replaced,omitempty"`
	Bytes            []byte          `json:"bytes,omitempty"`
	Body             json.RawMessage `json:"body,omitempty"`
}

// idOf returns the id of an event among the parked ones of its key.
func idOf(e *consumer.Event) string {
	if e.ID != "" {
		return e.ID
	}
	sum := sha256.Sum256(e.Body)
	return fmt.Sprintf("no-id-%d-%x", e.Sequence, sum[:8])
}

// markOf returns the id of the mark that an event has once it was parked. Marks of all keys are in one inbox.
func markOf(e *consumer.Event) string {
	if e.ID == "" {
		return e.Key + "/" + idOf(e)
	}
	return e.ID
}

// EncodeEvent returns the document of a parked event.
func EncodeEvent(e *consumer.Event) ([]byte, error) {
	p := parkedEvent{
		ID: e.ID, Key: e.Key, Action: e.Action, Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, Traceparent: e.Traceparent,
		CreatedAt: e.CreatedAt, EnqueuedAt: e.EnqueuedAt, SequenceNumber: e.SequenceNumber, Properties: e.Properties, Replaced: e.Replaced,
	}
	if kept, err := json.Marshal(json.RawMessage(e.Body)); err == nil && bytes.Equal(kept, e.Body) {
		p.Body = e.Body
	} else {
		p.Bytes = e.Body
	}
	document, err := json.Marshal(p)
	if err != nil { // a property of a type that JSON cannot express, such as NaN
		p.Properties = nil
		document, err = json.Marshal(p)
	}
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return document, nil
}

// DecodeEvent is the inverse of EncodeEvent. Properties have the types of JSON, numbers int64 or
// float64. The event aliases document.
func DecodeEvent(document []byte) (*consumer.Event, error) {
	var p parkedEvent
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	err := d.Decode(&p)
	if err == nil && p.Key == "" {
		err = errors.New("it has no key")
	}
	if err != nil {
		return &consumer.Event{ID: p.ID, Key: p.Key}, relay.Refuse(consumer.ReasonUndecodable, "the document is not a parked event: %w", err)
	}
	for name, value := range p.Properties {
		if n, ok := value.(json.Number); ok {
			p.Properties[name] = numberOf(n)
		}
	}
	return &consumer.Event{
		ID: p.ID, Key: p.Key, Action: p.Action, Sequence: p.Sequence, AggregateVersion: p.AggregateVersion, Traceparent: p.Traceparent,
		CreatedAt: p.CreatedAt, EnqueuedAt: p.EnqueuedAt, SequenceNumber: p.SequenceNumber, Properties: p.Properties, Replaced: p.Replaced,
		Body: append([]byte(p.Body), p.Bytes...), // one of them is empty
	}, nil
}

func numberOf(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64() // valid JSON; too large a number is infinite
	return f
}

// Decoder is the relay.Decoder of parked events. The body of a message is the whole document.
type Decoder struct{}

// Decode implements relay.Decoder.
func (Decoder) Decode(document []byte) (relay.Message, bool, error) {
	e, err := DecodeEvent(document)
	m := relay.Message{ID: idOf(e), Key: e.Key, Action: e.Action, Sequence: e.Sequence, Body: document}
	return m, err == nil, err
}
