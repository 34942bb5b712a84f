package busemu

import (
	"math"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
)

// appendDelivery appends a message for a receiver: the sections as they were sent, with the
// broker's annotations and delivery count. The bare message is unchanged unless a settlement
// has set properties.
//
// An embedded message is part of a $management reply (peeked, or received by sequence number).
// It also contains the message's state.
func appendDelivery(b []byte, d *broker.Delivery, embedded bool) ([]byte, error) {
	m, err := amqp.SplitMessage(d.Payload)
	if err != nil {
		return b, err
	}
	header, err := amqp.DecodeHeader(m.Header)
	if err != nil {
		return b, err
	}
	header.DeliveryCount = d.DeliveryCount
	header.TTL = ttlHeader(d.TTL)
	b = header.Append(b)
	if b, err = appendDeliveryAnnotations(b, m.DeliveryAnnotations, d); err != nil {
		return b, err
	}
	if b, err = appendAnnotations(b, m.MessageAnnotations, d, embedded); err != nil {
		return b, err
	}
	b = append(b, m.Properties...)
	if b, err = appendProperties(b, m.ApplicationProperties, d); err != nil {
		return b, err
	}
	b = append(b, m.Body...)
	return append(b, m.Footer...), nil
}

// appendDeliveryAnnotations appends the sender's annotations and the lock token. An embedded
// message needs the token there, because it has no delivery tag.
func appendDeliveryAnnotations(b, section []byte, d *broker.Delivery) ([]byte, error) {
	if d.LockToken == (broker.LockToken{}) {
		return append(b, section...), nil
	}
	w := amqp.BeginMapSection(b, amqp.CodeDeliveryAnnotations)
	err := amqp.VisitMapSection(section, func(key, value []byte) bool {
		if string(amqp.KeyText(key)) != annotationLockToken {
			w.Raw(key, value)
		}
		return true
	})
	w.UUID(annotationLockToken, amqp.UUID(d.LockToken))
	return w.Finish(), err
}

// ttlHeader returns the time to live in milliseconds, null if unlimited.
func ttlHeader(ttl time.Duration) amqp.Optional[uint32] {
	ms := ttl.Milliseconds()
	if ms <= 0 || ms > math.MaxUint32 {
		return amqp.Optional[uint32]{}
	}
	return amqp.Some(uint32(ms))
}

// appendAnnotations appends the sender's annotations, replaced by the broker's.
func appendAnnotations(b, section []byte, d *broker.Delivery, embedded bool) ([]byte, error) {
	w := amqp.BeginMapSection(b, amqp.CodeMessageAnnotations)
	err := amqp.VisitMapSection(section, func(key, value []byte) bool {
		switch string(amqp.KeyText(key)) {
		case annotationSequence, annotationEnqueuedSeq, annotationEnqueuedTime,
			annotationLockedUntil, annotationDeadLetterFrom, annotationState:
		default:
			w.Raw(key, value)
		}
		return true
	})
	w.Timestamp(annotationEnqueuedTime, amqp.TimestampOf(d.EnqueuedAt))
	w.Long(annotationSequence, d.SequenceNumber)
	if d.EnqueuedSequenceNumber != 0 {
		w.Long(annotationEnqueuedSeq, d.EnqueuedSequenceNumber)
	}
	if !d.LockedUntil.IsZero() {
		w.Timestamp(annotationLockedUntil, amqp.TimestampOf(d.LockedUntil))
	}
	if d.DeadLetterSource != "" {
		w.Symbol(annotationDeadLetterFrom, d.DeadLetterSource)
	}
	if embedded {
		w.Symbol(annotationState, int32(d.State))
	}
	return w.Finish(), err
}

// appendProperties appends the sender's application-properties, replaced by those of
// settlements.
func appendProperties(b, section []byte, d *broker.Delivery) ([]byte, error) {
	if d.DeadLetterReason == "" && d.DeadLetterDescription == "" && len(d.Properties) == 0 {
		return append(b, section...), nil
	}
	w := amqp.BeginMapSection(b, amqp.CodeApplicationProperties)
	err := amqp.VisitMapSection(section, func(key, value []byte) bool {
		if !overridden(string(amqp.KeyText(key)), d) {
			w.Raw(key, value)
		}
		return true
	})
	for _, p := range d.Properties {
		w.Raw(amqp.AppendString(nil, p.Name), p.Value)
	}
	if d.DeadLetterReason != "" {
		w.String(deadLetterReason, d.DeadLetterReason)
	}
	if d.DeadLetterDescription != "" {
		w.String(deadLetterDescription, d.DeadLetterDescription)
	}
	return w.Finish(), err
}

func overridden(name string, d *broker.Delivery) bool {
	switch name {
	case deadLetterReason:
		return d.DeadLetterReason != ""
	case deadLetterDescription:
		return d.DeadLetterDescription != ""
	}
	for _, p := range d.Properties {
		if p.Name == name {
			return true
		}
	}
	return false
}

const (
	deadLetterReason      = "DeadLetterReason"
	deadLetterDescription = "DeadLetterErrorDescription"
)
