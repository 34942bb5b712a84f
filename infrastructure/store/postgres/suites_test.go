package postgres_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/application/relay"
	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/infrastructure/relay/relayport"
	"feedbox/infrastructure/store/document"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

func TestLeases(t *testing.T) {
	t.Parallel()
	db := open(t)
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return postgres.Leases{DB: db} })
}

func TestParkedStore(t *testing.T) {
	t.Parallel()
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { return parked.Store{Records: postgres.Parked{DB: open(t)}} })
	db, consumers := open(t), 0
	relays := parked.Store{Records: postgres.Parked{DB: db}}
	parkedtest.Run(t, func(t *testing.T) parkedtest.Store { // all share the tables
		consumers++
		store, err := postgres.ParkedOf(db, fmt.Sprint("consumer", consumers))
		must(t, err)
		return store
	})
	if keys, err := relays.Closed(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("a relay sees the parked keys %v of consumers, %v", keys, err)
	}
	store, err := postgres.NewRelayStore(db, &postgres.RelayStoreOptions{Ranges: 1})
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
	got, err1 := postgres.NewRelayStore(db, nil)
	decoder, err2 := document.NewEventDecoder(document.EventContract{})
	must(t, errors.Join(err1, err2))
	if got.Feed == nil || got.Verify == nil || got.Upkeep == nil || got.ParkedOf == nil || got.ParkedBy == nil || got.Held == nil {
		t.Errorf("a part is missing: %+v", got)
	}
	got.Feed, got.Verify, got.Upkeep, got.ParkedOf, got.ParkedBy, got.Held = nil, nil, nil, nil, nil, nil // functions cannot be compared
	want := relayport.Store{
		Name: "postgres", Decoder: decoder, Events: recordstore.Events{Store: postgres.Records{DB: db}, Decoder: decoder}, Leases: postgres.Leases{DB: db}, Markers: postgres.Leases{DB: db},
		Parked: parked.Store{Records: postgres.Parked{DB: db}}, MaxItems: 1000, Waits: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestVerifyComparesTheSchema(t *testing.T) {
	t.Parallel()
	url := database(t)
	bare, err := postgres.Open(url, nil)
	must(t, err)
	defer bare.Close()
	scripts, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	if err := bare.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("version 0 and version %d is needed", len(scripts))) {
		t.Errorf("without a schema: %v", err)
	}
	_, pool := openAt(t, url)
	must(t, bare.Migrate(t.Context())) // again
	must(t, bare.Verify(t.Context()))
	_, err = pool.Exec(t.Context(), `INSERT INTO schema_version (version) VALUES (99)`)
	must(t, err)
	if err := bare.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "run the newer program") {
		t.Errorf("with a newer schema: %v", err)
	}
	_, err = pool.Exec(t.Context(), `UPDATE schema_version SET compatible = $1 WHERE version = 99`, len(scripts))
	must(t, err)
	if err := bare.Verify(t.Context()); err != nil {
		t.Errorf("with a newer schema that this program can use: %v", err)
	}
	_, err = pool.Exec(t.Context(), `DELETE FROM schema_version WHERE version = 99`)
	must(t, err)
	_, err = pool.Exec(t.Context(), `INSERT INTO events (xid, hash, key, id, document) VALUES ('999999999', 1, 'k', 'e', '{}')`)
	must(t, err)
	if err := bare.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "copied from another server") {
		t.Errorf("with events of another server: %v", err)
	}
	within(t, "the next id, if no transaction takes it meanwhile, is one of another server", func() bool {
		_, err := pool.Exec(t.Context(), `UPDATE events SET xid = (pg_current_xact_id()::text::bigint + 1)::text::xid8`)
		must(t, err)
		err = bare.Verify(t.Context())
		return err != nil && strings.Contains(err.Error(), "copied from another server")
	})

	_, err = pool.Exec(t.Context(), `DELETE FROM events`)
	must(t, err)
	must(t, bare.Verify(t.Context()))
	lease(t, bare, "a", changefeed.FullRange(), 999999999, "")
	if err := bare.Verify(t.Context()); err == nil || !strings.Contains(err.Error(), "copied from another server") {
		t.Errorf("with leases of another server, and without events: %v", err)
	}

	// A schema may have any name, unless the server would cut it: another schema may begin with the same 63 bytes.
	for _, name := range []string{`odd $$ "name"`, strings.Repeat("s", 63)} {
		odd, err := postgres.Open(url, &postgres.DBOptions{Schema: name})
		must(t, err)
		defer odd.Close()
		must(t, odd.Migrate(t.Context()))
		must(t, odd.Verify(t.Context()))
	}
	if _, err := postgres.Open(url, &postgres.DBOptions{Schema: strings.Repeat("s", 64)}); err == nil {
		t.Error("a schema whose name the server cuts is accepted")
	}
}

// The limit of a field, 1 GB, is far above any broker's. 16 MB is more than any broker takes, and
// more than one transaction of parked events has otherwise.
func TestLargeEventCanBeParkedAndSkipped(t *testing.T) {
	t.Parallel()
	db := open(t)
	recordstoretest.LargestEvent(t, recordstoretest.Subject{Store: postgres.Records{DB: db}}, postgres.Parked{DB: db}, 16<<20, nil)
}

// The URL sets the number of connections.
func TestPoolSizeOfTheURL(t *testing.T) {
	t.Parallel()
	url := database(t)
	_, pool := openAt(t, url)
	db, err := postgres.Open(url+"&application_name=narrow&pool_max_conns=1", nil)
	must(t, err)
	t.Cleanup(db.Close)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if _, err := db.Clock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	within(t, "there is one connection, and none that it has replaced is still being closed", func() bool {
		var connections int
		must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'narrow'`).Scan(&connections))
		return connections == 1
	})
}

// The order is that of the ids of transactions, so an event of a long one comes after an earlier event.
// A period ends before Until.
func TestRecentEventsOfAPeriodIncludeThatOfALongTransaction(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	now := time.Now().Truncate(time.Second)
	for id, age := range map[string]time.Duration{"10": 10 * time.Second, "11": 50 * time.Second, "12": 40 * time.Second, "13": 5 * time.Second} {
		_, err := pool.Exec(t.Context(), `INSERT INTO events (xid, hash, key, id, document, stored_at) VALUES ($1::text::xid8, 1, 'k', $1, '{}', $2)`, id, now.Add(-age))
		must(t, err)
	}
	q, got := relay.RecentQuery{From: now.Add(-30 * time.Second), Until: now.Add(-5 * time.Second), Limit: 1}, ""
	for more := true; more; more = q.Continuation != "" {
		page, err := postgres.Records{DB: db}.Recent(t.Context(), q, func(e recordstore.StoredEvent) relay.RecentEvent {
			return relay.RecentEvent{StoredEvent: relay.StoredEvent{Message: relay.Message{ID: e.ID}}}
		})
		must(t, err)
		for _, e := range page.Events {
			got += e.ID
		}
		q.Continuation = page.Continuation
	}
	if got != "10" {
		t.Errorf("found %q, want the event of transaction 10 only", got)
	}
}

// The end of a period is found by the times of events, of which one may be that of a long transaction.
func TestRecentEventsBeginAfterALongTransaction(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	const events = 11
	hour := func(ago int) time.Time { return time.Now().Add(-time.Duration(ago) * time.Hour) }
	for long := range events {
		_, err := pool.Exec(t.Context(), `DELETE FROM events`)
		must(t, err)
		_, err = pool.Exec(t.Context(), `INSERT INTO events (xid, hash, key, id, document, stored_at) SELECT n::text::xid8, 1, 'k', n, '{}', CASE WHEN n - 100 IN ($1::int, 100) THEN now() ELSE now() - interval '2 h' END
			FROM (SELECT generate_series(100, 99 + $2::int) UNION SELECT 200) AS all_events (n)`, long, events)
		must(t, err)
		page, err := postgres.Records{DB: db}.Recent(t.Context(), relay.RecentQuery{From: hour(3), Until: hour(1), Limit: 100}, func(e recordstore.StoredEvent) relay.RecentEvent {
			return relay.RecentEvent{StoredEvent: relay.StoredEvent{Message: relay.Message{ID: e.ID}}}
		})
		must(t, err)
		if len(page.Events) != events-1 {
			t.Errorf("%d events of the period, want the %d beside that of the long transaction %d", len(page.Events), events-1, 100+long)
		}
	}
}

// A feed may hold millions of events that are later than the period.
func TestRecentEventsOfAPeriodAreFoundWithoutLaterOnes(t *testing.T) {
	t.Parallel()
	url := database(t)
	_, pool := openAt(t, url)
	const later, period = 3000, 10
	_, err := pool.Exec(t.Context(), `INSERT INTO events (xid, hash, key, id, document, stored_at) SELECT (100+n)::text::xid8, 1, 'k', n, '{}', CASE WHEN n <= $1 THEN now() - interval '2 h' ELSE now() END FROM generate_series(1, $1::int + $2::int) n`, period, later)
	must(t, err)
	_, err = pool.Exec(t.Context(), `VACUUM ANALYZE events`)
	must(t, err)
	db, err := postgres.Open(url+"&application_name=operator", nil)
	must(t, err)
	q := relay.RecentQuery{From: time.Now().Add(-3 * time.Hour), Until: time.Now().Add(-time.Hour), Limit: 100}
	page, err := postgres.Records{DB: db}.Recent(t.Context(), q, func(recordstore.StoredEvent) relay.RecentEvent { return relay.RecentEvent{} })
	db.Close()
	must(t, err)
	within(t, "the connections have ended, which counts what they have read", func() bool {
		var open int
		must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'operator'`).Scan(&open))
		return open == 0
	})
	var read int
	must(t, pool.QueryRow(t.Context(), `SELECT sum(i.idx_tup_read) + min(t.seq_tup_read) FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t USING (relid) WHERE t.relname = 'events' AND t.schemaname = 'feedbox'`).Scan(&read))
	if len(page.Events) != period || read < period || read > later/2 {
		t.Errorf("%d entries of indexes and rows were read for %d events, want %d events and none of the %d later ones", read, len(page.Events), period, later)
	}
}

// Some events are of one transaction and key. Nothing orders them but their ids.
func TestRecentEvents(t *testing.T) {
	t.Parallel()
	db, pool := openAt(t, database(t))
	n := 0
	parkedtest.Recent(t, recordstore.Events{Store: postgres.Records{DB: db}, Decoder: document.EventDecoder{}}, func(key string, events int) {
		_, err := pool.Exec(t.Context(), `INSERT INTO events (hash, key, id, document)
			SELECT $1, $2, n, json_build_object('id', n::text, 'partitionKey', $2::text, 'type', 'domainEvent', 'data', json_build_object('action', 'A')) FROM generate_series($3::int, $4::int) n`,
			recordstore.Hash(key), key, n+1, n+events)
		must(t, err)
		n += events
	})
}
