package relayservice

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"feedbox/application/relay"
	"feedbox/changefeed"
)

// Store is what a relay needs of where events are committed. All but Upkeep, MaxItems, Waits and
// Held are required.
type Store struct {
	// Name is the store's in metrics and probes, such as "cosmos".
	Name string
	// Feed shows what was committed, and Decoder tells which of it is events.
	Feed    changefeed.Feed
	Decoder relay.Decoder
	// Events reads an event as it stands now.
	Events relay.Stored
	// Leases keeps who reads what, and how far it was read.
	Leases changefeed.LeaseStore
	// Parked keeps what cannot be sent.
	Parked Lot
	// Verify says what of the store is missing or wrong; faults Unavailable and Throttled say
	// that it did not answer.
	Verify func(ctx context.Context) error
	// Upkeep does what the store needs done regularly, until ctx ends, which is no error.
	// Default: nothing.
	Upkeep func(ctx context.Context) error
	// MaxItems is the page size that suits Feed. Default 100.
	MaxItems int
	// Waits says that reads of Feed wait for something to show, so that they need no pause of
	// Options.PollMin between them while changes keep coming.
	Waits bool
	// Held tells for how long something in the store has kept the feed from going on, such as
	// a transaction that somebody left open. Default: nothing does.
	Held func() time.Duration
}

// Lot keeps parked events, and counts them.
type Lot interface {
	relay.ParkedStore
	relay.DrainStore
	// Gates returns all closed gates, the one closed first in front.
	Gates(ctx context.Context) ([]relay.Gate, error)
}

// Broker is where the events go. All fields are required.
type Broker struct {
	// Name is the broker's in metrics of dependencies and in probes, such as "serviceBus".
	Name string
	// System and Destination are its attributes in metrics of messages, as the semantic
	// conventions of OpenTelemetry name them: "servicebus", and the topic.
	System, Destination string
	// Open returns the publisher, which tells sent of each batch. It does no I/O.
	Open func(log *slog.Logger, sent func(ctx context.Context, r relay.BatchReport)) (Publisher, error)
}

// Publisher is a publisher with links that it closes.
type Publisher interface {
	relay.Publisher
	// Close ends the links; the connection under them is the caller's.
	Close(ctx context.Context) error
}

func (s *Store) check() error {
	if s.Name == "" || s.Feed == nil || s.Decoder == nil || s.Events == nil || s.Leases == nil || s.Parked == nil || s.Verify == nil {
		return errors.New("relayservice: the store needs Name, Feed, Decoder, Events, Leases, Parked and Verify")
	}
	return nil
}

func (b *Broker) check() error {
	if b.Name == "" || b.System == "" || b.Destination == "" || b.Open == nil {
		return errors.New("relayservice: the broker needs Name, System, Destination and Open")
	}
	return nil
}
