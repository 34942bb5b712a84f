package firestore_test

import (
	"testing"

	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore/parked"
)

func TestLeases(t *testing.T) {
	db := open(t)
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return firestore.Leases{DB: db} })
}

func TestLot(t *testing.T) {
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { return parked.Lot{Store: firestore.Parked{DB: open(t)}} })
}
