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
	t.Parallel()
	db := open(t)
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return firestore.Leases{DB: db} })
}

func TestParkedStore(t *testing.T) {
	t.Parallel()
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { return parked.Store{Records: firestore.Parked{DB: open(t)}} })
}
