package postgres

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
)

// StoreName identifies PostgreSQL in metrics and probes.
const StoreName = "postgres"

// feedPage is the page size of the feed, in events. It is larger than the default, because
// each page costs a round trip and a descent of the index, and because the relay sends the
// keys of a page in parallel.
const feedPage = 1000

// RelayStoreOptions tune the store of a relay. The zero values are the defaults.
type RelayStoreOptions struct {
	// Contract distinguishes events from other documents. The zero value is that of package
	// document.
	Contract document.EventContract
	// Ranges is that of FeedOptions.
	Ranges int
	// Hold is that of FeedOptions. Default 250 ms, which is shorter than a stop may take;
	// negative for reads that return at once.
	Hold time.Duration
	// Log receives the findings of Upkeep. Default: slog.Default.
	Log *slog.Logger
}

// NewRelayStore returns the store of a relay. It does no I/O; db belongs to the caller.
func NewRelayStore(db *DB, o *RelayStoreOptions) (relayport.Store, error) {
	o = cmp.Or(o, &RelayStoreOptions{})
	feed, err1 := NewFeed(db, &FeedOptions{Ranges: o.Ranges, Hold: max(cmp.Or(o.Hold, 250*time.Millisecond), 0)})
	decoder, err2 := document.NewEventDecoder(o.Contract)
	if err := errors.Join(err1, err2); err != nil {
		return relayport.Store{}, err
	}
	return relayport.Store{
		Name: StoreName, Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: Records{DB: db}, Decoder: decoder},
		Leases: Leases{DB: db}, Markers: Leases{DB: db}, Parked: parked.Store{Records: Parked{DB: db}}, Verify: db.Verify,
		ParkedOf: func(consumer string) (relayport.Parked, error) { return ParkedOf(db, consumer) },
		ParkedBy: func(ctx context.Context) ([]string, error) {
			return parked.Consumers(ctx, Parked{DB: db, consumer: true})
		},
		Upkeep: Upkeep{DB: db, Log: cmp.Or(o.Log, slog.Default()), Held: feed.Held}.Run, Held: feed.Held, MaxItems: feedPage, Waits: true,
	}, nil
}
