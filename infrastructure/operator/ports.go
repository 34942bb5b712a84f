package operator

import (
	"context"
	"time"

	"feedbox/infrastructure/relay/relayport"
)

// Process is one of the two that the service consists of.
type Process string

// The processes.
const (
	ProcessRelay Process = "relay"
	ProcessAPI   Process = "api"
)

// Store is the store of a relay with its doctor.
type Store struct {
	relayport.Store
	Doctor StoreDoctor
	// Close ends the connections that were opened. Default: none to end.
	Close func()
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
	// Explain describes a relay's failed use of a part in one line, and says what to do.
	Explain(ctx context.Context, err error, part Part) (detail, next string)
}

// Broker is the broker of a relay with its doctor.
type Broker struct {
	relayport.Broker
	Doctor BrokerDoctor
	// Close ends the connections that were opened.
	Close func(ctx context.Context) error
}

// BrokerDoctor examines a broker.
type BrokerDoctor interface {
	// Examine runs the examinations of everything a relay needs of the broker by step, as
	// StoreDoctor.Examine does. Management is the base URL of the management API, "" for its
	// usual address. resend is the longest time after which a takeover repeats a send.
	Examine(step func(Examination) bool, management string, resend time.Duration)
	// Window returns the time within which the broker drops repeats, the shortest if there
	// are several; 0 for none.
	Window(ctx context.Context, management string) Window
}

// Window is a duplicate window.
type Window struct {
	Length  time.Duration
	Assumed bool // the broker did not answer
}
