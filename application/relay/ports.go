package relay

import "context"

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
	// If some were not accepted the error is a *PublishError that tells for each key
	// how many were accepted and why the next one was not: an *Error, or an error that
	// wraps the cause of ctx's end. After an Outage or Blocked failure it starts no
	// further sends and reports the rest as untried.
	//
	// No send starts after ctx has ended, and ctx bounds each send: its deadline is
	// the fence of a sender that may have lost its lease. Publish keeps nothing of
	// groups after it returned, and is safe for concurrent use.
	Publish(ctx context.Context, groups []Group) error
}
