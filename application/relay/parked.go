package relay

import (
	"context"
	"errors"
	"time"
)

// ParkedStore keeps events that could not be sent. Its unit is the key: a parked key has a
// closed gate and its parked events in order. While the gate is closed, only the Drainer sends
// events of the key.
//
// Gate.Admit defines the order: by sequence where it is known. An event that Gate.Progress covers
// is not parked again.
//
// Errors have the kinds of domain/fault. All methods are safe for concurrent use by several
// processes: every change of a gate, with the events parked or removed, is one transaction
// guarded by the gate's version.
type ParkedStore interface {
	// Closed returns the keys with closed gates: all that any process closed before the
	// call, and perhaps some whose gate is open again.
	Closed(ctx context.Context) ([]string, error)
	// Park parks events of key, at least one, in their order. An event that Gate.Admit does not admit is left
	// out. An admitted one with the id of a parked one is not stored again, and does not
	// change the gate. Park copies the events.
	//
	// If the gate is open, closing closes it. With a nil closing Park then returns
	// ErrGateOpen and changes nothing; it must not decide that from a stale read.
	Park(ctx context.Context, key string, events []ParkedEvent, closing *Closing) (ParkResult, error)
}

// ParkResult is the result of Park. Events in neither list were sent, skipped or parked before.
type ParkResult struct {
	Parked   []ParkedEvent // parked by this call, with their Position
	Existing []ParkedEvent // parked before, perhaps with other content, as they are stored
}

// ErrGateOpen is returned for a key that is not, or no longer, parked.
var ErrGateOpen = errors.New("the gate of the key is open")

// Closing is the reason why a gate is closed.
type Closing struct {
	Event  string // id of the event that was refused, or waited too long
	Reason string // as ReasonOf
	Error  string // for people
	At     time.Time
	// Auto is true if no event was refused, but the first one waited too long. The key is
	// drained without an operator once the broker accepts events again.
	Auto bool
}

// ParkedEvent is an event that could not be sent.
type ParkedEvent struct {
	ID       string // event id
	Key      string // partition key
	Action   string // "" if the document has none
	Document []byte // the document as read from the feed
	LSN      int64
	Sequence int64

	Reason   string // see ReasonOf; "held" for an event that waits for an earlier one
	Error    string // for people; "" for a held one
	Attempts int    // number of attempts; 0 for a held one
	ParkedAt time.Time

	Position int64    // the order among parked events of the key; set by Gate.Admit
	Progress Progress // place in the feed, for Gate.Admit; not stored, zero = unknown
	// InOrder is true if the event follows all events of its key that were parked before, whatever
	// its sequence. A consumer knows that, because its broker keeps the order. For Gate.Admit; not
	// stored.
	InOrder bool
	// Closing, if set, is that of the gate behind which the event is to be held. Behind another one it is
	// not admitted, because it may have been sent before that was closed. For Gate.Admit; not stored.
	Closing *Closing
}

// Intent is an operator's request for a parked key.
type Intent struct {
	Verb  Verb
	Event string // for VerbSkip: the id of the first parked event
	By    string // the operator
	Note  string // the operator's reason
	At    time.Time
	// FromStore sends the current document of each event from the store instead of the
	// parked one.
	FromStore bool
}

// Verb is the kind of an Intent.
type Verb string

const (
	// VerbRetry sends the events in order and opens the gate.
	VerbRetry Verb = "retry"
	// VerbSkip skips the first event, keeps a record of it with the Intent, and continues as
	// VerbRetry.
	VerbSkip Verb = "skip"
)

// Skipped is the record of an event that an operator skipped.
type Skipped struct {
	Event  ParkedEvent
	Intent Intent
}

// EventRef identifies an event.
type EventRef struct{ Key, ID string }

// CodeGateUnconfirmed is the code of a fault of DrainStore.Gate: no gate was found, but the store
// refused to confirm that there is none.
const CodeGateUnconfirmed = "gate_unconfirmed"

// DrainStore is the part of a ParkedStore that the Drainer uses.
type DrainStore interface {
	// Intents returns the gates whose Gate.EffectiveIntent is not nil.
	Intents(ctx context.Context) ([]Gate, error)
	// Gate returns the gate of key; NotFound if it is open.
	Gate(ctx context.Context, key string) (Gate, error)
	// Update stores the gate if its version is the stored one, and returns it with its new
	// version. Otherwise it returns PreconditionFailed, or NotFound if the gate is open.
	Update(ctx context.Context, g Gate) (Gate, error)
	// First returns the first parked events of key in order, up to limit. It ends with the
	// event whose document reaches maxBytes of all documents, so it returns at least one if
	// there is one. The store must not hold many more bytes than that in memory.
	First(ctx context.Context, key string, limit, maxBytes int) ([]ParkedEvent, error)
	// Remove removes the events, at most 90, subtracts them from Gate.Events and stores the
	// gate like Update; skipped, if not nil, is kept as a record. All of it is one transaction.
	Remove(ctx context.Context, g Gate, events []ParkedEvent, skipped *Skipped) (Gate, error)
	// Open removes the gate, with the errors of Update. The key must have no parked events.
	Open(ctx context.Context, g Gate) error
}
