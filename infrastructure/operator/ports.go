package operator

import (
	"context"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Process is one of the two that the service consists of.
type Process string

// The processes.
const (
	ProcessRelay Process = "relay"
	ProcessAPI   Process = "api"
)

// Store is what an Operator needs of where events are committed: the relay's own ports, and
// what only people ask for.
type Store struct {
	Feed    changefeed.Feed
	Decoder relay.Decoder
	Events  Events
	Leases  changefeed.LeaseStore
	Parked  Lot
	Doctor  StoreDoctor
	// Close ends the connections that were made. Default: there are none to end.
	Close func()
}

// Events reads events where they were committed.
type Events interface {
	relay.Stored
	// OfKey returns the events of a key that have not expired, in the order of their
	// sequence numbers. Faults: Invalid (code "unsendable") for one that is no event,
	// Throttled, Unavailable.
	OfKey(ctx context.Context, key string) ([]relay.StoredEvent, error)
}

// Lot is an operator's side of the parked events.
type Lot interface {
	relay.DrainStore
	// Gates returns all closed gates, the one closed first in front.
	Gates(ctx context.Context) ([]relay.Gate, error)
	// SetIntent notes on the gate of key what is wanted; NotFound if the gate is open.
	SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	// Skipped returns the records of what was left out of key, the oldest first.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
}

// Part is what of a store a process uses.
type Part string

// The parts of a store that a relay uses.
const (
	PartFeed   Part = "feed"
	PartLeases Part = "leases"
	PartParked Part = "parked"
)

// Examination looks at one thing, reading only, and says what it found.
type Examination func(ctx context.Context) []Finding

// StoreDoctor examines a store.
type StoreDoctor interface {
	// Examine has step run the examinations of what process needs of the store, in their
	// order, and leaves out what cannot be examined because of an earlier failure. It
	// reports whether the store can be used. Step bounds an examination, reports what it
	// found and tells whether nothing failed.
	Examine(process Process, step func(Examination) bool) (usable bool)
	// Advise says what to do about a failed use of a part by a relay.
	Advise(ctx context.Context, err error, part Part) string
}

// Broker is an operator's side of where events go.
type Broker interface {
	// Open returns a publisher like the relay's.
	Open() (Publisher, error)
	// Examine has step run the examinations of what a relay needs of the broker, as
	// StoreDoctor.Examine does. Management is where the management API is, "" for where it
	// usually is. A takeover sends what was sent up to resend ago again.
	Examine(step func(Examination) bool, management string, resend time.Duration)
	// Window is the time within which the broker drops what is sent again, the shortest if
	// there are several; 0 for none.
	Window(ctx context.Context, management string) Window
	// Close ends the connections that were made.
	Close(ctx context.Context) error
}

// Publisher is a publisher with links that it closes.
type Publisher interface {
	relay.Publisher
	Close(ctx context.Context) error
}

// Window is a duplicate window.
type Window struct {
	Length  time.Duration
	Assumed bool // the broker's own could not be read
}
