package operator

import (
	"context"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
	"feedbox/infrastructure/relay/relayport"
)

// Process is one of the two processes of the service.
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
	// ParkedDecoder decodes the documents of ParkedOf. Default: they cannot be edited.
	ParkedDecoder relay.Decoder
	// LeasesOf returns the leases of the processor in a container that is not configured any more, by its entry of
	// FEEDBOX_RELAY_CONTAINERS. Default: there is one container.
	LeasesOf func(entry string) (*changefeed.Operator, error)
	// Close ends the connections that were opened. Default: none to end.
	Close func()
}

// Part is a part of a store.
type Part string

// The parts of a store that a relay uses.
const (
	PartFeed   Part = "feed"
	PartLeases Part = "leases"
	PartParked Part = "parked"
)

// Unusable has the check that failed of each part that cannot be used.
type Unusable map[Part]string

// AllUnusable returns an Unusable in which check failed for all parts.
func AllUnusable(check string) Unusable {
	return Unusable{PartFeed: check, PartLeases: check, PartParked: check}
}

// Of returns the failed check of the first of parts that cannot be used, "" if all can.
func (u Unusable) Of(parts ...Part) string {
	for _, part := range parts {
		if u[part] != "" {
			return u[part]
		}
	}
	return ""
}

// Examination examines one thing, reading only, and returns its findings.
type Examination func(ctx context.Context) []Finding

// StoreDoctor examines a store.
type StoreDoctor interface {
	// Examine runs the examinations of everything process needs of the store by step, in
	// order. In the place of those that an earlier failure makes pointless it runs
	// Unexamined. It returns the failed check of each part that cannot be used. Step bounds an
	// examination, reports its findings, and reports whether none failed.
	Examine(process Process, step func(Examination) bool) Unusable
	// Describe returns the text of err in one line.
	Describe(err error) string
	// Advise returns the remedy for a relay's failed use of a part. It may send a request, to
	// name the identity that lacks a right.
	Advise(ctx context.Context, err error, part Part) string
}

// Broker is the broker of a relay with its doctor.
type Broker struct {
	relayport.Broker
	Doctor BrokerDoctor
	// DeadLetters are those of the consumers. Default: none.
	DeadLetters relayport.DeadLetters
	// Close ends the connections that were opened. Default: none to end.
	Close func(ctx context.Context) error
}

// BrokerDoctor examines a broker.
type BrokerDoctor interface {
	// Examine runs the examinations of everything a relay needs of the broker by step, as
	// StoreDoctor.Examine does, with Unexamined. Management is the base URL of the management API, "" for its
	// usual address. resend is the longest time after which a takeover repeats a send.
	Examine(step func(Examination) bool, management string, resend time.Duration)
	// Window returns the time within which the broker drops repeats, the shortest if there
	// are several; 0 for none.
	Window(ctx context.Context, management string) Window
	// Consumers returns the names of the consumers, for Broker.DeadLetters.
	Consumers(ctx context.Context, management string) ([]string, error)
}

// Window is a duplicate window.
type Window struct {
	Length  time.Duration
	Assumed bool // the broker's own could not be read
}
