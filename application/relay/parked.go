package relay

import (
	"context"
	"errors"
	"time"
)

// ParkedStore keeps events that could not be sent. Its unit is the key: a gate says that the
// key is parked, behind it stand the events in their order. While the gate is closed no
// event of the key is sent but by the Drainer.
//
// The order is that of Gate.Admit: by sequence where it is known. An event that is done,
// as Gate.Progress tells, is not parked again.
//
// Errors have the kinds of domain/fault. All methods are safe for concurrent use and by
// several processes: every change of a gate, and every event put behind it or taken
// away, is one transaction guarded by the gate's version.
type ParkedStore interface {
	// Closed returns the keys whose gates are closed, every one that was closed before the
	// call by whatever process, and perhaps some that are open.
	Closed(ctx context.Context) ([]string, error)
	// Park puts events behind the gate of key, each at its place. An event that is there
	// already, by its id, stays as it is; one that is done is left out. The events are
	// copied.
	//
	// closing, if not nil, closes the gate if it is open. Without it Park returns
	// ErrGateOpen if the gate is open, and changes nothing. An old state of the gate is not
	// enough for that.
	Park(ctx context.Context, key string, events []ParkedEvent, closing *Closing) (Parking, error)
}

// Parking is what became of the events given to Park. Those that it does not name are done.
type Parking struct {
	Parked []ParkedEvent // stand behind the gate now, at their Position
	Before []ParkedEvent // stood there before, as they are stored
}

// ErrGateOpen says that a key is not parked (any more).
var ErrGateOpen = errors.New("the gate of the key is open")

// Closing is why a gate is closed.
type Closing struct {
	Event  string // id of the event that was refused, or waited too long
	Reason string // as ReasonOf
	Error  string // for people
	At     time.Time
	// Auto says that no event was refused: the first one waited too long. The key is
	// drained without an operator once the broker accepts events again.
	Auto bool
	// Progress is how far the key had come before the event. A gate keeps it as its own.
	Progress Progress
}

// ParkedEvent is an event that could not be sent.
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

	Position int64 // what the line is ordered by; set by Gate.Admit
}

// Intent is what an operator wants to become of a parked key.
type Intent struct {
	Verb  Verb
	Event string // for Skip: the id of the event, which must be the first in line
	By    string // who
	Note  string // why
	At    time.Time
	// FromStore sends each event as its document stands in the store now, not as it was
	// parked.
	FromStore bool
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

// Skipped is the record of an event that an operator left out.
type Skipped struct {
	Event  ParkedEvent
	Intent Intent
}

// DrainStore is the side of a ParkedStore that the Drainer needs.
type DrainStore interface {
	// Intents returns the gates of which something is wanted, as Gate.Wanted tells.
	Intents(ctx context.Context) ([]Gate, error)
	// Gate returns the gate of key; NotFound if it is open.
	Gate(ctx context.Context, key string) (Gate, error)
	// Update stores the gate if its version is still the stored one, else it fails with
	// PreconditionFailed, or NotFound. It returns the gate with its new version.
	Update(ctx context.Context, g Gate) (Gate, error)
	// First returns the first events behind the gate of key, up to limit, in order.
	First(ctx context.Context, key string, limit int) ([]ParkedEvent, error)
	// Remove takes the events away, 90 at most, and stores the gate, as Update does, after
	// Gate.Release; skipped, if not nil, is kept for the record. All of it is one
	// transaction.
	Remove(ctx context.Context, g Gate, events []ParkedEvent, skipped *Skipped) (Gate, error)
	// Open removes the gate, as Update does. There must be no event behind it.
	Open(ctx context.Context, g Gate) error
}
