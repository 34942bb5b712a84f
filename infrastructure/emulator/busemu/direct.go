package busemu

import (
	"context"
	"fmt"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// Direct access for tests, without AMQP.

// Message is a message for Send. Empty fields are not set.
type Message struct {
	ID           string
	Session      *string
	PartitionKey string
	Subject      string
	ContentType  string
	Properties   map[string]any // application properties: string, bool, integers, floats, time.Time
	Body         []byte
	TTL          time.Duration
	ScheduledAt  time.Time
}

// PeekedMessage is a message in an entity.
type PeekedMessage struct {
	Message
	SequenceNumber int64
	EnqueuedAt     time.Time
	DeliveryCount  uint32 // failed deliveries
	State          string // "active", "deferred" or "scheduled"
	DeadLetter     DeadLetter
}

// DeadLetter is the reason for dead-lettering; zero elsewhere.
type DeadLetter struct{ Reason, Description, Source string }

// Send sends messages to a queue or topic as one batch: all or none. It returns when they are
// durable.
func (s *Server) Send(ctx context.Context, entity string, messages ...Message) error {
	info, err := s.broker.Lookup(entity)
	if err != nil {
		return fmt.Errorf("busemu: send to %s: %w", entity, err)
	}
	batch := make([]broker.Message, len(messages))
	for i := range messages {
		encoded, err := messages[i].encode()
		if err != nil {
			return fmt.Errorf("busemu: send to %s: message %d: %w", entity, i, err)
		}
		if batch[i], err = readMessage(encoded, &info); err != nil {
			return fmt.Errorf("busemu: send to %s: message %d: %w", entity, i, err)
		}
	}
	done := make(chan error, 1)
	s.broker.Send(entity, batch, func(err error) { done <- err })
	if err := await(ctx, done); err != nil {
		return fmt.Errorf("busemu: send to %s: %w", entity, err)
	}
	return nil
}

func (m *Message) encode() ([]byte, error) {
	var b []byte
	if m.TTL > 0 {
		b = (&amqp.Header{TTL: ttlHeader(m.TTL)}).Append(b)
	}
	if m.PartitionKey != "" || !m.ScheduledAt.IsZero() {
		w := amqp.BeginMapSection(b, amqp.CodeMessageAnnotations)
		if m.PartitionKey != "" {
			w.Symbol(annotationPartitionKey, m.PartitionKey)
		}
		if !m.ScheduledAt.IsZero() {
			w.Timestamp(annotationScheduledTime, amqp.TimestampOf(m.ScheduledAt))
		}
		b = w.Finish()
	}
	var p amqp.Properties
	if m.ID != "" {
		p.SetText(amqp.MessageID, m.ID)
	}
	if m.Subject != "" {
		p.SetText(amqp.Subject, m.Subject)
	}
	if m.ContentType != "" {
		p[amqp.ContentType] = amqp.AppendSymbol(nil, amqp.Symbol(m.ContentType))
	}
	if m.Session != nil {
		p.SetText(amqp.GroupID, *m.Session)
	}
	b = p.Append(b)
	if len(m.Properties) > 0 {
		w := amqp.BeginMapSection(b, amqp.CodeApplicationProperties)
		for name, v := range m.Properties {
			value, err := propertyValue(v)
			if err != nil {
				return nil, fmt.Errorf("property %s: %w", name, err)
			}
			w.String(name, value)
		}
		b = w.Finish()
	}
	return amqp.AppendData(b, m.Body), nil
}

// propertyValue returns the AMQP form of an application property.
func propertyValue(v any) (any, error) {
	switch t := v.(type) {
	case time.Time:
		return amqp.TimestampOf(t), nil
	case int:
		return int64(t), nil
	case nil, bool, string, []byte, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64:
		return v, nil
	default:
		return nil, fmt.Errorf("type %T is not supported for application properties", v)
	}
}

// Peek returns up to n messages of an entity in order without locking them, including locked,
// deferred and scheduled ones. Entity is a queue, topic/Subscriptions/name, or either with
// /$DeadLetterQueue.
func (s *Server) Peek(entity string, n int) ([]PeekedMessage, error) {
	return s.PeekPart(entity, PeekOptions{Count: n})
}

// PeekOptions select the messages for PeekPart.
type PeekOptions = broker.PeekOptions

// PeekPart is Peek from a given sequence number, or of one session.
func (s *Server) PeekPart(entity string, o PeekOptions) ([]PeekedMessage, error) {
	found, err := s.broker.Peek(entity, o)
	if err != nil {
		return nil, fmt.Errorf("busemu: peek %s: %w", entity, err)
	}
	out := make([]PeekedMessage, len(found))
	for i := range found {
		if out[i], err = peeked(&found[i]); err != nil {
			return nil, fmt.Errorf("busemu: peek %s: %w", entity, err)
		}
	}
	return out, nil
}

func peeked(d *broker.Delivery) (PeekedMessage, error) {
	p := PeekedMessage{
		SequenceNumber: d.SequenceNumber, EnqueuedAt: d.EnqueuedAt, DeliveryCount: d.DeliveryCount,
		State:      [...]string{"active", "deferred", "scheduled"}[d.State],
		DeadLetter: DeadLetter{d.DeadLetterReason, d.DeadLetterDescription, d.DeadLetterSource},
	}
	p.ID, p.PartitionKey, p.TTL, p.ScheduledAt = d.MessageID, d.PartitionKey, d.TTL, d.ScheduledAt
	if d.HasSession {
		session := d.SessionID
		p.Session = &session
	}
	b, err := appendDelivery(nil, d, true)
	if err != nil {
		return p, err
	}
	sections, err := amqp.SplitMessage(b)
	if err != nil {
		return p, err
	}
	fields, err := decodeFields(b)
	if err != nil {
		return p, err
	}
	p.Subject, p.ContentType, p.Properties = fields.Subject, fields.ContentType, fields.Properties
	if data, err := sections.Data(); err == nil { // other kinds of body have no bytes
		for _, part := range data {
			p.Body = append(p.Body, part...)
		}
	}
	return p, nil
}

// Dump returns the broker's entities, sessions and first messages as text, for the message of
// a failed test.
func (s *Server) Dump() string { return s.broker.Dump() }
