package relay

import "time"

// Change is one document of the change feed.
type Change struct {
	Raw       []byte    // the document, one JSON object; not changed by the relay
	LSN       int64     // the feed's position of its transaction; 0 if the feed does not tell
	Timestamp time.Time // when it was committed, by the store's clock
}

// Message is an event on its way to the broker. Its strings and its body alias the
// document it was decoded from.
type Message struct {
	ID     string // event id; the broker's message id, never changed between attempts
	Key    string // partition key of the aggregate; the broker's session
	Action string // event type, for example OrderPlacedEvent; the message's subject
	Body   []byte // the event, byte for byte as stored

	LSN              int64  // position of the event's transaction
	Sequence         int64  // place of the event in the history of its key, from 1; 0 = unknown
	AggregateVersion int64  // version of the aggregate that the event produced; 0 = unknown
	CreatedAt        string // RFC 3339, as stored; "" = unknown
	Traceparent      string // W3C trace context of the request; "" = none

	Index int // place of the change in the slice given to Handle
}

// Group is the messages of one key, in the order in which they must be sent.
type Group struct {
	Key      string
	Messages []Message
	Alone    bool // not to be put into one batch with other keys: it failed before
}
