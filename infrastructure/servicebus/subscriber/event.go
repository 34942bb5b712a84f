package subscriber

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
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

	EnqueuedAt    time.Time // when the broker accepted it; zero = not told
	DeliveryCount int       // 1 at the first delivery
	Properties    map[string]any
}

// Handler works on one event. It is called from several goroutines, for events of
// different keys. The same event may come again, after a crash for example; the inbox
// makes that rare, not impossible.
//
// Nil completes the event. An error of [DeadLetter] moves it to the dead-letter queue.
// Any other error puts it back; the broker dead-letters it after its maximum number of
// deliveries.
//
// ctx ends when the session's lock is lost or the drain takes too long.
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

// ErrLockLost is the cause of a handler's context when its session's lock was lost.
var ErrLockLost = errors.New("session lock lost")

// ErrDrainTimeout is the cause of a handler's context when the drain took too long.
var ErrDrainTimeout = errors.New("drain took too long")

// newEvent reads the event out of a message of the session key.
func newEvent(key string, m *azservicebus.ReceivedMessage) *Event {
	e := &Event{
		ID: m.MessageID, Key: key, Body: m.Body, DeliveryCount: int(m.DeliveryCount), Properties: m.ApplicationProperties,
		Sequence: whole(m.ApplicationProperties["sequence"]), AggregateVersion: whole(m.ApplicationProperties["aggregateVersion"]),
	}
	e.Traceparent, _ = m.ApplicationProperties["traceparent"].(string)
	if m.Subject != nil {
		e.Action = *m.Subject
	}
	if m.EnqueuedTime != nil {
		e.EnqueuedAt = *m.EnqueuedTime
	}
	return e
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
