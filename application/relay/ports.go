package relay

import (
	"context"
	"errors"
	"time"
)

// Decoder reads an event out of a stored document.
type Decoder interface {
	// Decode returns the event in raw. The second result is false if raw is not an event;
	// the relay then skips it. For the document of an aggregate, the message carries the
	// aggregate's key and the sequence of its last event.
	//
	// For an event without a required field it returns a Refused *Error. The message then
	// carries the readable fields, because the later events of its key must be held back.
	//
	// The message aliases raw. Decode is safe for concurrent use.
	Decode(raw []byte) (Message, bool, error)
}

// Publisher hands messages to the broker.
type Publisher interface {
	// Publish sends every message of groups and returns nil once the broker has
	// accepted all of them. Each group has its own key. Messages of a key are sent in
	// their order, at most one batch of a key at a time; keys are independent.
	//
	// If some were not accepted, the error is a *PublishError. The error of a key is an
	// *Error or wraps the cause of ctx. A failure of one key stops no other key.
	//
	// No send starts after ctx has ended, and ctx bounds each send, because its deadline is
	// the fence of a sender that may have lost its lease. Publish must not retain groups,
	// and is safe for concurrent use.
	Publish(ctx context.Context, groups []Group) error
}

// BatchReport describes one batch that a publisher sent, or could not send because it did not
// reach its destination: the topic is missing, for example. Such a batch has no messages.
type BatchReport struct {
	Keys     int
	Messages int           // sent
	Accepted int           // of Messages
	Took     time.Duration // until the broker's answer
	Err      error         // nil: accepted; as in KeyError
	Shard    string        // that received it, see Options.Shards, or another part of the broker; "" if there is one
}

// Ranges is the ownership of feed ranges in this process.
type Ranges interface {
	// Own calls do under the ownership of the key's feed range and returns its error. The
	// context of do ends when the lease may have expired; an owner that releases the range
	// waits for do first. If this process does not own the range, Own returns ErrNotOwned
	// without calling do. If the ownership ends before do does, the error wraps ErrNotOwned
	// and that of do. Own is safe for concurrent use.
	Own(ctx context.Context, key string, do func(ctx context.Context) error) error
}

// ErrNotOwned is returned if another process, or none, owns the feed range of a key.
var ErrNotOwned = errors.New("the feed range of the key is not owned by this process")

// Stored reads committed events.
type Stored interface {
	// Event returns the current document of an event of key. The caller may modify it. It
	// returns fault.NotFound if the event has expired or was removed.
	Event(ctx context.Context, key, id string) ([]byte, error)
}

// StoredEvent is an event that is still in the store.
type StoredEvent struct {
	Message
	// StoredAt is the time of the commit, in whole seconds.
	StoredAt time.Time
}

// Change is one document of the change feed.
type Change struct {
	Raw       []byte    // the document, one JSON object; not changed by the relay
	LSN       int64     // the feed's position of its transaction; 0 = unknown
	Timestamp time.Time // commit time by the store's clock
}

// Message is an event to be sent to the broker. Its strings and its body alias the document
// that it was decoded from.
type Message struct {
	ID     string // event id; the broker's message id, never changed between attempts
	Key    string // partition key of the aggregate; the broker's session
	Action string // event type, for example OrderPlacedEvent; the message's subject
	Body   []byte // the event, byte for byte as stored

	LSN              int64  // position of the event's transaction
	Sequence         int64  // place of the event in the history of its key, from 1; 0 = unknown
	Ordinal          int64  // place of the event in its transaction, from 1; 0 = unknown
	AggregateVersion int64  // version of the aggregate after the event; 0 = unknown
	CreatedAt        string // RFC 3339, as stored; "" = unknown
	Traceparent      string // W3C trace context of the request; "" = none

	Index int // index of the change in the slice passed to Handle
}

// Group is the messages of one key in order.
type Group struct {
	Key      string
	Messages []Message
	Alone    bool // must not share a batch with other keys, because it failed before
}
