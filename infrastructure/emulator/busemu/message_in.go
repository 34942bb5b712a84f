package busemu

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/busemu/amqp"
	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/sqlfilter"
)

const (
	annotationPartitionKey   = "x-opt-partition-key"
	annotationScheduledTime  = "x-opt-scheduled-enqueue-time"
	annotationDeliveryTime   = "x-opt-delivery-time" // JMS's form of the schedule: a long
	annotationSequence       = "x-opt-sequence-number"
	annotationEnqueuedSeq    = "x-opt-enqueue-sequence-number"
	annotationEnqueuedTime   = "x-opt-enqueued-time"
	annotationLockedUntil    = "x-opt-locked-until"
	annotationDeadLetterFrom = "x-opt-deadletter-source"
	annotationState          = "x-opt-message-state"
	annotationLockToken      = "x-opt-lock-token" // a delivery annotation

	// maxIDLength limits message, session and partition ids.
	maxIDLength = 128
)

// readMessages reads a delivery: one message, or the messages of a batch.
func readMessages(b []byte, format uint32, info *broker.EntityInfo) ([]broker.Message, error) {
	switch format {
	case 0:
		m, err := readMessage(b, info)
		if err != nil {
			return nil, err
		}
		if len(m.Payload) > info.MaxMessageSize {
			return nil, messageTooLarge(len(m.Payload), info.MaxMessageSize)
		}
		return []broker.Message{m}, nil
	case amqp.BatchFormat:
		return readBatch(b, info)
	default:
		return nil, &amqp.Error{Condition: condNotImplemented, Description: fmt.Sprintf("message format 0x%08x is not supported", format)}
	}
}

func messageTooLarge(size, limit int) error {
	return &amqp.Error{
		Condition:   condMessageSize,
		Description: fmt.Sprintf("The received message (size:%d bytes) exceeds the limit (%d bytes) currently allowed on the link.", size, limit),
	}
}

// readBatch reads a batch (azservicebus message_batch.go): each data section is an encoded
// message.
func readBatch(b []byte, info *broker.EntityInfo) ([]broker.Message, error) {
	if len(b) > info.MaxBatchSize {
		return nil, messageTooLarge(len(b), info.MaxBatchSize)
	}
	envelope, err := amqp.SplitMessage(b)
	if err != nil {
		return nil, decodeError(err)
	}
	parts, err := envelope.Data()
	if err != nil {
		return nil, decodeError(err)
	}
	if len(parts) == 0 {
		return nil, &amqp.Error{Condition: condInvalidField, Description: "a batch without messages"}
	}
	batch := make([]broker.Message, len(parts))
	for i, part := range parts {
		if batch[i], err = readMessage(part, info); err != nil {
			return nil, err
		}
		if len(part) > info.MaxMessageSize {
			return nil, messageTooLarge(len(part), info.MaxMessageSize)
		}
	}
	return batch, nil
}

func decodeError(err error) error {
	return &amqp.Error{Condition: condDecodeError, Description: err.Error()}
}

// readMessage reads the fields that the broker needs. The message's bytes stay unchanged.
func readMessage(b []byte, info *broker.EntityInfo) (broker.Message, error) {
	sections, err := amqp.SplitMessage(b)
	if err != nil {
		return broker.Message{}, decodeError(err)
	}
	m := broker.Message{Payload: b}
	header, err := amqp.DecodeHeader(sections.Header)
	if err != nil {
		return m, decodeError(err)
	}
	if header.TTL.Set {
		m.TTL = max(time.Duration(header.TTL.Value)*time.Millisecond, time.Millisecond)
	}
	props, err := amqp.DecodeProperties(sections.Properties)
	if err != nil {
		return m, decodeError(err)
	}
	if m.MessageID, err = messageID(&props); err != nil {
		return m, err
	}
	if props[amqp.GroupID] != nil {
		if m.SessionID, m.HasSession = props.Text(amqp.GroupID); !m.HasSession {
			return m, &amqp.Error{Condition: condInvalidField, Description: "group-id is not a string"}
		}
	}
	if err := readAnnotations(sections.MessageAnnotations, &m); err != nil {
		return m, err
	}
	if err := checkLengths(&m); err != nil {
		return m, err
	}
	if m.MessageID == "" && info.Partitioned && props[amqp.MessageID] == nil {
		m.MessageID = newUUID().hex()
		props.SetText(amqp.MessageID, m.MessageID)
		sections.Properties = props.Append(nil)
		m.Payload = sections.Append(make([]byte, 0, len(b)+64))
	}
	return m, nil
}

func checkLengths(m *broker.Message) error {
	for _, id := range [...]struct{ name, value string }{{"MessageId", m.MessageID}, {"SessionId", m.SessionID}, {"PartitionKey", m.PartitionKey}} {
		if len(id.value) > maxIDLength && len([]rune(id.value)) > maxIDLength {
			return &broker.Error{Condition: broker.ArgumentError, Description: fmt.Sprintf("The %s of a message exceeds %d characters.", id.name, maxIDLength)}
		}
	}
	return nil
}

// messageID returns the message id as text, for duplicate detection.
func messageID(props *amqp.Properties) (string, error) {
	if s, ok := props.Text(amqp.MessageID); ok {
		return s, nil
	}
	v, err := props.Value(amqp.MessageID)
	if err != nil {
		return "", decodeError(err)
	}
	switch id := v.(type) {
	case nil:
		return "", nil
	case uint64:
		return strconv.FormatUint(id, 10), nil
	case amqp.UUID:
		return id.String(), nil
	case []byte:
		return hex.EncodeToString(id), nil
	default:
		return "", &amqp.Error{Condition: condInvalidField, Description: fmt.Sprintf("message-id of type %T", v)}
	}
}

// readAnnotations reads the annotations a sender may set.
func readAnnotations(section []byte, m *broker.Message) error {
	var bad error
	err := amqp.VisitMapSection(section, func(key, value []byte) bool {
		switch string(amqp.KeyText(key)) {
		case annotationPartitionKey:
			v, err := amqp.DecodeValue(value)
			if s, ok := amqp.Text(v); ok {
				m.PartitionKey = s
			} else if v != nil || err != nil {
				bad = &amqp.Error{Condition: condInvalidField, Description: annotationPartitionKey + " is not a string"}
			}
		case annotationDeliveryTime:
			v, _ := amqp.DecodeValue(value)
			if ms, ok := amqp.Integer(v); ok {
				m.ScheduledAt = time.UnixMilli(ms)
			} else {
				bad = &amqp.Error{Condition: condInvalidField, Description: annotationDeliveryTime + " is not a number of milliseconds"}
			}
		case annotationScheduledTime:
			v, err := amqp.DecodeValue(value)
			if t, ok := v.(amqp.Timestamp); ok {
				m.ScheduledAt = t.Time()
			} else if v != nil || err != nil {
				bad = &amqp.Error{Condition: condInvalidField, Description: annotationScheduledTime + " is not a timestamp"}
			}
		}
		return bad == nil
	})
	if err != nil {
		return decodeError(err)
	}
	return bad
}

// decodeFields reads the fields that correlation and SQL filters compare.
func decodeFields(payload []byte) (sqlfilter.Fields, error) {
	sections, err := amqp.SplitMessage(payload)
	if err != nil {
		return sqlfilter.Fields{}, err
	}
	props, err := amqp.DecodeProperties(sections.Properties)
	if err != nil {
		return sqlfilter.Fields{}, err
	}
	var f sqlfilter.Fields
	if f.MessageID, err = messageID(&props); err != nil {
		return f, err
	}
	for i, field := range map[amqp.Property]*string{
		amqp.CorrelationID: &f.CorrelationID, amqp.To: &f.To, amqp.ReplyTo: &f.ReplyTo, amqp.Subject: &f.Subject,
		amqp.GroupID: &f.SessionID, amqp.ReplyToGroupID: &f.ReplyToSessionID, amqp.ContentType: &f.ContentType,
	} {
		*field, _ = props.Text(i)
	}
	app, err := amqp.DecodeMapSection(sections.ApplicationProperties)
	if err != nil {
		return f, err
	}
	f.Properties = make(map[string]any, len(app))
	for _, e := range app {
		if name, ok := amqp.Text(e.Key); ok {
			f.Properties[name] = filterValue(e.Value)
		}
	}
	return f, nil
}

// filterValue converts a property's value to the types that filters compare.
func filterValue(v any) any {
	switch t := v.(type) {
	case amqp.Timestamp:
		return t.Time()
	case amqp.Symbol:
		return string(t)
	case amqp.UUID:
		return sqlfilter.UUID(t)
	case uint64:
		if t > math.MaxInt64 {
			return nil
		}
		return t
	default:
		return v
	}
}
