package relay

import (
	"context"
	"errors"
	"time"
)

// Lot keeps events that could not be sent. Its unit is the key: a gate says that the
// key is parked, behind it stand the events in their order. While the gate is closed no
// event of the key is sent but by the Drainer.
//
// Errors have the kinds of domain/fault. All methods are safe for concurrent use and by
// several processes: every change of a gate, and every event put behind it or taken
// away, is one transaction guarded by the gate's version.
type Lot interface {
	// Closed returns the keys whose gates are closed, every one that was closed before the
	// call by whatever process, and perhaps some that are open.
	Closed(ctx context.Context) ([]string, error)
	// Park puts events behind the gate of key in their order, after those that are there.
	// An event that is there already stays where it is. The events are copied.
	//
	// closing, if not nil, closes the gate if it is open. Without it Park returns
	// ErrGateOpen if the gate is open, and changes nothing. An old state of the gate is not
	// enough for that.
	Park(ctx context.Context, key string, events []ParkedEvent, closing *Closing) error
}

// ErrGateOpen says that a key is not parked (any more).
var ErrGateOpen = errors.New("the gate of the key is open")

// Closing is why a gate is closed.
type Closing struct {
	Event  string // id of the event that was refused
	Reason string // as ReasonOf
	Error  string // for people
	At     time.Time
}

// ParkedEvent is an event that waits in a Lot.
type ParkedEvent struct {
	ID       string // event id
	Key      string // partition key
	Action   string // "" if the document does not tell
	Document []byte // the document as the feed showed it
	LSN      int64
	Sequence int64

	Reason   string // as ReasonOf; "held" for an event that waits for an earlier one
	Error    string // for people; "" for a held one
	Attempts int    // how often it was tried; 0 for a held one
	ParkedAt time.Time

	Position int64 // its place behind the gate; set by the Lot
}

// Gate is the state of a parked key.
type Gate struct {
	Key      string
	Closing  Closing
	Events   int64     // how many stand behind it
	Last     int64     // the last position given to an event
	Intent   *Intent   // what an operator wants; nil = nothing
	Claim    *Claim    // who is draining it; nil = nobody
	Attempts int       // how often it was tried to drain
	Error    string    // why the last try failed; "" = it did not
	TriedAt  time.Time // when the last try ended; zero = never tried
	Listed   string    // the Lot's own note on how Closed finds the gate; kept as it is
	Version  string    // changes with every change of the gate
}

// Intent is what an operator wants to become of a parked key.
type Intent struct {
	Verb  Verb
	Event string // for Skip: the id of the event, which must be the first in line
	By    string // who
	Note  string // why
	At    time.Time
}

// Verb is what can be done about a parked key.
type Verb string

const (
	// VerbRetry sends the events in their order and opens the gate.
	VerbRetry Verb = "retry"
	// VerbSkip leaves the first event out, with a record of who wanted it and why, and
	// goes on as VerbRetry does.
	VerbSkip Verb = "skip"
)

// Claim is one relay's right to drain a gate. It is renewed by raising Beat; a claim
// whose beat stands still for ClaimExpiry, by the observer's own clock, is void.
type Claim struct {
	Owner string // who, for people
	Token string // one per run of a drainer
	Beat  int64
}

// Skipped is the record of an event that an operator left out.
type Skipped struct {
	Event  ParkedEvent
	Intent Intent
}

// DrainLot is the side of a Lot that the Drainer needs.
type DrainLot interface {
	// Intents returns the gates that have an intent.
	Intents(ctx context.Context) ([]Gate, error)
	// Gate returns the gate of key; NotFound if it is open.
	Gate(ctx context.Context, key string) (Gate, error)
	// Update stores the gate if its version is still the stored one, else it fails with
	// PreconditionFailed, or NotFound. It returns the gate with its new version.
	Update(ctx context.Context, g Gate) (Gate, error)
	// First returns the first events behind the gate of key, up to limit, in order.
	First(ctx context.Context, key string, limit int) ([]ParkedEvent, error)
	// Remove takes the events away and stores the gate, as Update does; skipped, if not
	// nil, is kept for the record.
	Remove(ctx context.Context, g Gate, ids []string, skipped *Skipped) (Gate, error)
	// Open removes the gate, as Update does. There must be no event behind it.
	Open(ctx context.Context, g Gate) error
}
