package relayport

import (
	"context"
	"errors"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Store holds the events of a relay, its leases and its parked events. All fields but Markers,
// ParkedOf, ParkedBy, Upkeep, MaxItems, Waits and Held are required.
type Store struct {
	// Name identifies the store in metrics and probes, such as "cosmos".
	Name string
	// Feed reads committed changes, and Decoder distinguishes events from other documents.
	Feed    changefeed.Feed
	Decoder relay.Decoder
	// Events reads the current content of events.
	Events Events
	// Leases holds the owner and the checkpoint of each range.
	Leases changefeed.LeaseStore
	// Parked holds the events that cannot be sent.
	Parked Parked
	// ParkedOf returns the parked events of a consumer, for operators. Default: consumers park elsewhere.
	ParkedOf func(consumer string) (Parked, error)
	// ParkedBy returns the names of the consumers with parked keys, sorted. Default: as ParkedOf.
	ParkedBy func(ctx context.Context) ([]string, error)
	// Markers keeps the name of the processor that owns Parked, in the same place as Parked. It
	// may be that of Leases only if Leases and Parked are always in one place. Default: none, so
	// that no second processor is refused.
	Markers changefeed.LeaseStore
	// Verify returns an error that names everything missing or wrong in the store; faults
	// Unavailable and Throttled if the store did not answer.
	Verify func(ctx context.Context) error
	// Upkeep does regular maintenance until ctx ends, and returns nil then. Default: none.
	Upkeep func(ctx context.Context) error
	// MaxItems is the default page size of Feed, in documents. Default 100.
	MaxItems int
	// Waits reports that a read of Feed blocks until there is a change, so the relay needs no
	// pause of Options.PollMin between reads while changes keep coming.
	Waits bool
	// Held returns for how long something in the store, such as an open transaction, has kept
	// the feed from advancing. Default: never.
	Held func() time.Duration
}

// Events reads events in the store that committed them.
type Events interface {
	relay.Stored
	// OfKey returns the unexpired events of a key in the order of their sequence numbers.
	// Faults: Invalid (code "unsendable") for a document that is no event, Throttled,
	// Unavailable.
	OfKey(ctx context.Context, key string) ([]relay.StoredEvent, error)
}

// Parked holds parked events, for the relay that parks and drains them and for the operator
// who decides about them.
type Parked interface {
	relay.ParkedStore
	relay.DrainStore
	// Gates returns all closed gates, in the order in which they were closed.
	Gates(ctx context.Context) ([]relay.Gate, error)
	// SetIntent records the operator's intent on the gate of key; NotFound if it is open.
	SetIntent(ctx context.Context, key string, intent relay.Intent) (relay.Gate, error)
	// Replace replaces the document of a parked event of g and stores the gate like Update, in one
	// transaction.
	Replace(ctx context.Context, g relay.Gate, e relay.ParkedEvent) (relay.Gate, error)
	// Skipped returns the records of the events that were skipped for key, oldest first.
	Skipped(ctx context.Context, key string) ([]relay.Skipped, error)
	// SkippedAmong returns those of the events that were skipped. It reads all in one request,
	// because a list of events has as many keys as events.
	SkippedAmong(ctx context.Context, events []relay.EventRef) (map[relay.EventRef]bool, error)
}

// Check returns an error if a required field is missing.
func (s *Store) Check() error {
	if s.Name == "" || s.Feed == nil || s.Decoder == nil || s.Events == nil || s.Leases == nil || s.Parked == nil || s.Verify == nil {
		return errors.New("relay: the store needs Name, Feed, Decoder, Events, Leases, Parked and Verify")
	}
	return nil
}
