package firestore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/firestore"
	"feedbox/infrastructure/store/recordstore"
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
	db, consumers := open(t), 0
	relays := parked.Store{Records: firestore.Parked{DB: db}}
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { // all share the collections
		consumers++
		store, err := firestore.ParkedOf(db, fmt.Sprint("consumer", consumers))
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
	if keys, err := relays.Closed(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("a relay sees the parked keys %v of consumers, %v", keys, err)
	}
	store, err := firestore.NewRelayStore(db, document.EventContract{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	names, err := store.ParkedBy(t.Context())
	if err != nil || len(names) == 0 || !slices.IsSorted(names) || slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "consumer") || strings.Contains(name, "/") }) {
		t.Errorf("consumers with parked keys: %q, %v", names, err)
	}
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

func TestRecentEvents(t *testing.T) {
	t.Parallel()
	db := open(t)
	n := 0
	parkedtest.Recent(t, recordstore.Events{Store: firestore.Records{DB: db}, Decoder: document.EventDecoder{}}, func(key string, events int) {
		for range events {
			n++
			must(t, db.AddEvent(t.Context(), key, fmt.Sprint(n), fmt.Sprintf(`{"id":"%d","partitionKey":%q,"type":"domainEvent","data":{"action":"A"}}`, n, key), -1))
		}
	})
}
