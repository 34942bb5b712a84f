package consumer

import (
	"context"
	"time"
)

// Event is a received event.
type Event struct {
	ID               string // event id
	Key              string // the partition key of the aggregate
	Action           string // event type
	Body             []byte // the event as stored, JSON
	Sequence         int64  // place in the history of the key, from 1; 0 = not told
	AggregateVersion int64  // version of the aggregate; 0 = not told
	Traceparent      string // W3C trace context of the request; "" = none

	EnqueuedAt     time.Time // when the broker accepted it; zero = not told
	SequenceNumber int64     // the broker's, of all messages of the source; 0 = it has none
	DeliveryCount  int       // 1 at the first try
	Properties     map[string]any
}

// Names of properties that the relay gives a message, the same for every broker. Service Bus has
// the key as the session id.
const (
	PropertyKey              = "partitionKey"
	PropertyTraceparent      = "traceparent"
	PropertySequence         = "sequence"         // a whole number
	PropertyAggregateVersion = "aggregateVersion" // a whole number
)

// Mark is what the inbox is to remember once the event is handled. A handler that writes
// to a database may store it in the same transaction, where its Inbox looks: the event is
// then handled once, whatever crashes when. Packages cosmosinbox, postgresinbox
// and firestoreinbox do so.
func (e *Event) Mark() Mark {
	return Mark{Sequence: e.Sequence, AggregateVersion: e.AggregateVersion, EventID: e.ID}
}

// Handler works on one event. It is called from several goroutines, for events of
// different keys. The same event may come again, after a crash for example; the inbox
// makes that rare, not impossible.
//
// Nil completes the event. An error of [DeadLetter] moves it to the dead-letter queue, one
// of [Defer] leaves it where it can be asked for. After any other error the event is handled
// again, and dead-lettered after a number of tries that the kit or the broker bounds.
//
// ctx ends when the broker may have given the event to another consumer, or the drain takes
// too long.
type Handler func(ctx context.Context, e *Event) error
