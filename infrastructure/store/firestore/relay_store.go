package firestore

import (
	"context"
	"errors"

	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
)

// StoreName identifies Firestore in metrics and probes.
const StoreName = "firestore"

// NewRelayStore returns the store of a relay. contract distinguishes events from other
// documents, and ranges is that of NewFeed; 0 for the default. It does no I/O; db belongs to
// the caller.
func NewRelayStore(db *DB, contract document.EventContract, ranges int) (relayport.Store, error) {
	feed, err1 := NewFeed(db, ranges)
	decoder, err2 := document.NewEventDecoder(contract)
	if err := errors.Join(err1, err2); err != nil {
		return relayport.Store{}, err
	}
	return relayport.Store{
		Name: StoreName, Feed: feed, Decoder: decoder, Events: recordstore.Events{Store: Records{DB: db}, Decoder: decoder},
		Leases: Leases{DB: db}, Markers: Leases{DB: db}, Parked: parked.Store{Records: Parked{DB: db}}, Verify: db.Verify,
		ParkedOf: func(consumer string) (relayport.Parked, error) { return ParkedOf(db, consumer) },
		ParkedBy: func(ctx context.Context) ([]string, error) {
			return parked.Consumers(ctx, Parked{DB: db, gates: collectionConsumerGates})
		},
	}, nil
}
