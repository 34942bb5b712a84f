package relay

import (
	"context"
	"errors"
	"time"
)

// Decoder reads an event out of a stored document.
type Decoder interface {
	// Decode returns the event that raw holds. The second result is false if raw is
	// not an event; the relay skips it then. If it is the document of an aggregate, the
	// message carries the aggregate's key and, as Sequence, that of its last event.
	//
	// A document that says it is an event and lacks what an event must have gives a
	// Refused *Error. The message then carries what could be read, its key above all,
	// so that the later events of the key can be held back.
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
	// If some were not accepted the error is a *PublishError; the error of a key is an
	// *Error or wraps the cause of ctx's end. A failure of one key stops no other.
	//
	// No send starts after ctx has ended, and ctx bounds each send: its deadline is
	// the fence of a sender that may have lost its lease. Publish keeps nothing of
	// groups after it returned, and is safe for concurrent use.
	Publish(ctx context.Context, groups []Group) error
}

// BatchReport tells of one batch that a publisher sent.
type BatchReport struct {
	Keys, Messages int
	Took           time.Duration // until the broker's answer
	Err            error         // nil: accepted
}

// Ranges is the ownership of feed ranges in this process.
type Ranges interface {
	// Own runs do under the ownership of the feed range that key lies in and returns what
	// do does. Its context ends when the range's lease can no longer be trusted; an owner
	// that gives the range up waits for do first. If this process does not own the range,
	// do is not run and the error is ErrNotOwned; that also comes beside do's own error if
	// the ownership ended before do did. Own is safe for concurrent use.
	Own(ctx context.Context, key string, do func(ctx context.Context) error) error
}

// ErrNotOwned says that the feed range of a key belongs to another process, or to none.
var ErrNotOwned = errors.New("the feed range of the key is not owned by this process")

// Stored reads events where they were committed.
type Stored interface {
	// Event returns the document of an event of key as it stands now. It is the caller's.
	// fault.NotFound says that it has expired or was removed.
	Event(ctx context.Context, key, id string) ([]byte, error)
}

// StoredEvent is an event that is still in the store.
type StoredEvent struct {
	Message
	// StoredAt is when the store took it, in whole seconds.
	StoredAt time.Time
}

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
