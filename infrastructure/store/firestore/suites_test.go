package firestore_test

import (
	"fmt"
	"testing"

	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
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

func TestLargestEventCanBeParkedAndSkipped(t *testing.T) {
	t.Parallel()
	db := open(t)
	recordstoretest.LargestEvent(t, recordstoretest.Subject{Store: firestore.Records{DB: db}}, firestore.Parked{DB: db}, 1<<20, func(f *fault.Error) int {
		var size, limit int
		if _, err := fmt.Sscanf(f.Message, "a document would have %d bytes, and Firestore allows %d", &size, &limit); err != nil {
			t.Fatalf("%q: %v", f.Message, err)
		}
		return size - limit
	})
}
