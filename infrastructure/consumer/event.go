package consumer

import (
	"context"
	"strings"
	"time"
)

// Event is a received event.
type Event struct {
	ID               string // event id
	Key              string // the partition key of the aggregate
	Action           string // event type
	Body             []byte // the event as stored, JSON
	Sequence         int64  // position in the history of the key, from 1; 0 = unknown
	AggregateVersion int64  // version of the aggregate; 0 = unknown
	Traceparent      string // W3C trace context of the request; "" = none

	CreatedAt      time.Time // when it was created, just before its commit; zero = unknown
	EnqueuedAt     time.Time // when the broker accepted it; zero = unknown
	SequenceNumber int64     // assigned by the broker, unique in the source; 0 = none
	DeliveryCount  int       // 1 for the first delivery
	Properties     map[string]any

	// Replaced is the number of events of the key that were handled and are not in the history of this
	// one, because the store has lost them: see "Forks" in the package comment. Usually 0.
	Replaced int64
	// Resubmission is the id under which an operator sent the event again from the dead-letter queue of
	// this consumer, or that of a parked event (WasParked); "" = none. It is handled once, even after later events of its key, so a handler
	// that keeps marks of its own must compare it under InboxKey.
	Resubmission string
}

// Names of the properties that the relay sets on a message of any broker. Service Bus carries the key
// as the session id instead.
const (
	PropertyKey              = "partitionKey"
	PropertyTraceparent      = "traceparent"
	PropertySequence         = "sequence"         // an integer
	PropertyAggregateVersion = "aggregateVersion" // an integer
)

// Names of the properties of a resubmitted message. Its message id is new, because a topic drops an id
// that it knows.
const (
	PropertyEventID       = "eventId"       // on Service Bus
	PropertyResubmission  = "resubmission"  // the id of the resubmission
	PropertyResubmittedTo = "resubmittedTo" // the only consumer that handles it, on Service Bus
)

// InboxKey returns the key of the mark that shows whether the event was handled: that of the
// resubmission, or the key of the event. The mark of the key would make a resubmitted event stale.
func (e *Event) InboxKey() string {
	if e.Resubmission != "" {
		return "resubmission:" + e.Resubmission
	}
	return e.Key
}

// parkedPrefix distinguishes parked events from dead letters that were sent again.
const parkedPrefix = "parked:"

// Park makes e the parked event with that id. It has a mark of its own: the mark of the key, which is that
// of the last parked event, would make it stale.
func (e *Event) Park(id string) { e.Resubmission = parkedPrefix + id }

// WasParked reports whether the event was parked by its consumer and is handled again. It is still in the
// order of its key, unlike a dead letter that was sent again.
func (e *Event) WasParked() bool { return strings.HasPrefix(e.Resubmission, parkedPrefix) }

// Mark returns the mark of the event without those before it; see Mark.Next. A handler that stores it
// in its own transaction has its effect exactly once, even after a crash. Packages cosmosinbox,
// postgresinbox and firestoreinbox do this.
func (e *Event) Mark() Mark {
	return Mark{Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, EventID: e.ID}
}

// Handler handles one event. It is called concurrently for events of different keys. It may be
// called again for an event that it has handled, for example after a crash; the inbox makes that
// rare but cannot prevent it.
//
// Nil completes the event. [DeadLetter] moves it to the dead-letter queue, and [Defer] defers it.
// [Unavailable] says nothing about the event, which is retried without an attempt. After any other error the event is retried. The kit or the broker dead-letters it after too many
// attempts.
//
// ctx ends when the broker may have delivered the event to another consumer, or when the drain
// timeout expires.
type Handler func(ctx context.Context, e *Event) error
