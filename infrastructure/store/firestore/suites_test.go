package firestore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/domain/fault"
	"feedbox/infrastructure/relay/relayport"
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

// A relay uses all parts of its store, and each must use the same database.
func TestRelayStoreIsThatOfItsDatabase(t *testing.T) {
	t.Parallel()
	db := open(t)
	got, err1 := firestore.NewRelayStore(db, document.EventContract{}, 0)
	decoder, err2 := document.NewEventDecoder(document.EventContract{})
	must(t, errors.Join(err1, err2))
	if got.Feed == nil || got.Verify == nil || got.ParkedOf == nil || got.ParkedBy == nil {
		t.Errorf("a part is missing: %+v", got)
	}
	got.Feed, got.Verify, got.ParkedOf, got.ParkedBy = nil, nil, nil, nil // functions cannot be compared
	want := relayport.Store{
		Name: "firestore", Decoder: decoder, Events: recordstore.Events{Store: firestore.Records{DB: db}, Decoder: decoder}, Leases: firestore.Leases{DB: db}, Markers: firestore.Leases{DB: db},
		Parked: parked.Store{Records: firestore.Parked{DB: db}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
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

// Tests judge a whole database by these documents, so none may be missing, and a judgement ends the walk.
func TestWalkVisitsAllDocuments(t *testing.T) {
	t.Parallel()
	db := open(t)
	made, err := recordstoretest.Baskets(t, firestore.Records{DB: db}, nil).Create(t.Context(), recordstoretest.Opening(""))
	must(t, err)
	must(t, db.AddEvent(t.Context(), "k", "event", `{"id":"event","type":"added"}`, -1))
	_, err = firestore.Parked{DB: db}.Commit(t.Context(), &parked.Change{
		Gate: parked.Gate{Key: "k", Data: []byte(`{}`)}, Put: []relay.ParkedEvent{{Key: "k", ID: "parked", Document: []byte(`{}`)}},
	})
	must(t, err)
	ids, visits := map[string]string{}, 0
	must(t, db.Walk(t.Context(), func(raw []byte) error {
		var d struct{ ID, Type string }
		err := json.Unmarshal(raw, &d)
		ids[d.ID] = d.Type
		return err
	}))
	if id := made.Aggregate.ID().String(); ids["event"] != "added" || ids["parked"] != "parkedEvent" || ids[id] == "" {
		t.Errorf("visited %v, want an event, a parked one and the aggregate %s", ids, id)
	}
	judgement := errors.New("wrong")
	err = db.Walk(t.Context(), func([]byte) error {
		visits++
		return judgement
	})
	if !errors.Is(err, judgement) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
}
