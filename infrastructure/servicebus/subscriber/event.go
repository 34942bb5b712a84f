package subscriber

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
)

// Event is a received event.
type Event struct {
	ID               string // event id
	Key              string // session: the partition key of the aggregate
	Action           string // event type
	Body             []byte // the event as stored, JSON
	Sequence         int64  // place in the history of the key, from 1; 0 = not told
	AggregateVersion int64  // version of the aggregate; 0 = not told
	Traceparent      string // W3C trace context of the request; "" = none

	EnqueuedAt     time.Time // when the broker accepted it; zero = not told
	SequenceNumber int64     // the broker's, of all messages of the source
	DeliveryCount  int       // 1 at the first delivery
	Properties     map[string]any

	session *Session
}

// Session is the session of the event, nil without a SessionProcessor. It serves while the
// handler runs.
func (e *Event) Session() *Session { return e.session }

// Mark is what the inbox is to remember once the event is handled. A handler that writes
// to a database may store it in the same transaction, where its Inbox looks: the event is
// then handled once, whatever crashes when. Package cosmosinbox does so for Cosmos DB.
func (e *Event) Mark() Mark {
	return Mark{Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, EventID: e.ID}
}

// Handler works on one event. It is called from several goroutines, for events of
// different keys. The same event may come again, after a crash for example; the inbox
// makes that rare, not impossible.
//
// Nil completes the event. An error of [DeadLetter] moves it to the dead-letter queue, one
// of [Defer] keeps it in the source, to be asked for by its SequenceNumber. Any other error
// puts it back; the broker dead-letters it after its maximum number of deliveries.
//
// ctx ends when the lock is lost or the drain takes too long.
type Handler func(ctx context.Context, e *Event) error

// DeadLetterError asks for an event to be moved to the dead-letter queue.
type DeadLetterError struct {
	Reason string // short and stable, for example "unknown_schema"
	Err    error  // its text is the description
}

// DeadLetter returns an error that moves the event to the dead-letter queue.
func DeadLetter(reason string, err error) error {
	return &DeadLetterError{Reason: reason, Err: err}
}

// Error implements error.
func (e *DeadLetterError) Error() string {
	if e.Err == nil {
		return "dead letter: " + e.Reason
	}
	return "dead letter: " + e.Reason + ": " + e.Err.Error()
}

// description returns the text of the cause, cut to what the broker takes for sure.
func (e *DeadLetterError) description() string {
	if e.Err == nil {
		return ""
	}
	const limit = 1024
	text := e.Err.Error()
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// Unwrap returns the cause.
func (e *DeadLetterError) Unwrap() error { return e.Err }

var errDeferred = errors.New("the event is deferred")

// Defer returns an error that leaves the event in the source, out of the way of those behind
// it: it is delivered no more, and can be asked for by its SequenceNumber.
func Defer() error { return errDeferred }

// ErrLockLost is the cause of a handler's context when the lock of its session, or of its
// message, was lost.
var ErrLockLost = errors.New("lock lost")

// ErrDrainTimeout is the cause of a handler's context when the drain took too long.
var ErrDrainTimeout = errors.New("drain took too long")

// newEvent reads the event out of a message of a key.
func newEvent(key string, m *amqp.Message) *Event {
	e := &Event{
		Key: key, Body: body(m), DeliveryCount: 1, Properties: m.ApplicationProperties,
		Sequence: whole(m.ApplicationProperties["sequence"]), AggregateVersion: whole(m.ApplicationProperties["aggregateVersion"]),
	}
	if m.Header != nil {
		e.DeliveryCount += int(m.Header.DeliveryCount)
	}
	e.Traceparent, _ = m.ApplicationProperties["traceparent"].(string)
	if p := m.Properties; p != nil {
		if p.Subject != nil {
			e.Action = *p.Subject
		}
		if text, ok := p.MessageID.(string); ok {
			e.ID = text
		} else if p.MessageID != nil {
			e.ID = fmt.Sprint(p.MessageID)
		}
	}
	e.EnqueuedAt, _ = m.Annotations["x-opt-enqueued-time"].(time.Time)
	e.SequenceNumber, _ = m.Annotations["x-opt-sequence-number"].(int64)
	return e
}

// body returns the bytes of a message: of its data sections, or of a value that is a text.
func body(m *amqp.Message) []byte {
	if len(m.Data) == 1 {
		return m.Data[0]
	}
	switch v := m.Value.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return bytes.Join(m.Data, nil)
}

// keyOf is the key of a message that came without a session.
func keyOf(m *amqp.Message) string {
	if m.Properties != nil && m.Properties.GroupID != nil {
		return *m.Properties.GroupID
	}
	key, _ := m.Annotations["x-opt-partition-key"].(string)
	return key
}

// whole returns an AMQP integer of any width; 0 for anything else.
func whole(v any) int64 {
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

// PanicError is a panic of a Handler. It puts the event back as any other error.
type PanicError struct{ Value any }

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }
