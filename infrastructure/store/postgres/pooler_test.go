package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/application/relay/parkedtest"
	"feedbox/changefeed"
	"feedbox/changefeed/leasetest"
	"feedbox/infrastructure/store/postgres"
	"feedbox/infrastructure/store/recordstore/parked"
	"feedbox/infrastructure/store/recordstore/recordstoretest"
)

// pooler returns the URL of a database through PgBouncer.
func pooler(t *testing.T, url string) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	return shared.server.Pooler(t, url)
}

// The suites of all stores, and the feed, pass through a pooler that gives each transaction another
// connection.
func TestStoreWorksThroughAPoolerOfTransactions(t *testing.T) {
	through := pooler(t, database(t)) + "&pool_max_conns=8"
	var schemas atomic.Int32
	open := func(t testing.TB) *postgres.DB {
		db, err := postgres.Open(through, &postgres.DBOptions{Schema: fmt.Sprint("s", schemas.Add(1))})
		must(t, err)
		t.Cleanup(db.Close)
		must(t, db.Migrate(t.Context()))
		must(t, db.Verify(t.Context()))
		if s, err := db.State(t.Context()); err != nil || !s.Pooled {
			t.Errorf("state %+v, %v: want the pooler in it", s, err)
		}
		return db
	}
	t.Run("leases", func(t *testing.T) {
		db := open(t)
		leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return postgres.Leases{DB: db} })
	})
	t.Run("parked", func(t *testing.T) {
		parkedtest.Run(t, func(t *testing.T) parkedtest.Store { return parked.Store{Records: postgres.Parked{DB: open(t)}} })
	})
	t.Run("records", func(t *testing.T) { recordstoretest.UnitOfWork(t, subject(open(t))) })
	t.Run("events", func(t *testing.T) { recordstoretest.Events(t, subject(open(t))) })
	t.Run("writers", func(t *testing.T) { recordstoretest.ConcurrentWriters(t, subject(open(t))) })
	t.Run("own transactions", func(t *testing.T) {
		db := open(t)
		pool, err := pgxpool.New(t.Context(), through+"&default_query_exec_mode=exec")
		must(t, err)
		defer pool.Close()
		outbox := postgres.Outbox{Schema: fmt.Sprint("s", schemas.Load())}
		for range 20 {
			must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return outbox.Emit(t.Context(), tx, "k", postgres.Event{Action: "A"}) }))
		}
		in := newInbox(t, db, 1)
		within(t, "20 events are read", func() bool { in.read(t, 7); return in.last["k"] == 20 })
	})
	t.Run("feed", func(t *testing.T) {
		db := open(t)
		store := baskets(t, db, nil)
		feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 4})
		must(t, err)
		var writers sync.WaitGroup
		for w := range 8 {
			writers.Go(func() {
				for n := range 10 {
					if _, err := store.Create(context.WithoutCancel(t.Context()), recordstoretest.Opening(fmt.Sprint(w, "-", n))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
		positions, keys := map[changefeed.FeedRange]string{}, map[string]bool{}
		within(t, "the events of 80 keys are read", func() bool {
			drain(t, feed, positions, 7, func(key, _ string) { keys[key] = true })
			return len(keys) == 80
		})
		must(t, postgres.Upkeep{DB: db}.Sweep(t.Context()))
	})
}

// An address may lead to the server at first, and to a pooler later.
func TestPoolerThatAppearsLaterIsUsedAsOne(t *testing.T) {
	direct := database(t)
	through, err := url.Parse(pooler(t, direct))
	must(t, err)
	var moved atomic.Bool
	var opened sync.Map // connections
	db, err := postgres.Open(direct, &postgres.DBOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if moved.Load() {
			address = through.Host
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		opened.Store(conn, true)
		return conn, err
	}})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Migrate(t.Context()))
	if s, err := db.State(t.Context()); err != nil || s.Pooled {
		t.Fatalf("without a pooler: %+v, %v", s, err)
	}
	moved.Store(true)
	opened.Range(func(conn, _ any) bool {
		_ = conn.(net.Conn).Close()
		return true
	})
	pooled := false
	for range 20 { // one fails for each connection of before, and one to learn of the pooler
		s, failed := db.State(t.Context())
		pooled, err = s.Pooled, failed
		if err == nil {
			break
		}
	}
	if err != nil || !pooled {
		t.Fatalf("pooled %t, %v", pooled, err)
	}
	leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return postgres.Leases{DB: db} })
}

// A database whose default gives up durability loses no acknowledged commit: each commit waits for
// the disk, through a pooler as well, where no setting of a session would last.
func TestEveryCommitIsDurableWhateverTheDefault(t *testing.T) {
	for _, way := range []string{"direct", "pooled"} {
		t.Run(way, func(t *testing.T) {
			url := database(t)
			owner, pool := openAt(t, url)
			owner.Close() // sessions keep the default that they began with
			// The trigger runs at the commit, when the server reads the setting.
			_, err := pool.Exec(t.Context(), `CREATE TABLE commits (of text, setting text);
				CREATE FUNCTION feedbox.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					INSERT INTO feedbox.commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END $$;
				DO $$ DECLARE t text; BEGIN
					EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database());
					FOREACH t IN ARRAY ARRAY['aggregates', 'events', 'leases', 'gates', 'parked'] LOOP
						EXECUTE format('CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON feedbox.%I DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION feedbox.note()', t);
					END LOOP; END $$`)
			must(t, err)
			if way == "pooled" {
				url = pooler(t, url)
			}
			db, err := postgres.Open(url, nil)
			must(t, err)
			t.Cleanup(db.Close)
			recordstoretest.UnitOfWork(t, subject(db))
			recordstoretest.LargestEvent(t, recordstoretest.Subject{Store: postgres.Records{DB: db}}, postgres.Parked{DB: db}, 1<<16, nil)
			leases := postgres.Leases{DB: db}
			etag, err := leases.Create(t.Context(), changefeed.Record{ID: "l", Body: []byte("{}")})
			must(t, err)
			etag, err = leases.Replace(t.Context(), changefeed.Record{ID: "l", ETag: etag, Body: []byte("{}")})
			must(t, err)
			must(t, leases.Delete(t.Context(), "l", etag))
			var seen []string
			must(t, pool.QueryRow(t.Context(), `SELECT array_agg(DISTINCT of || ' ' || setting ORDER BY of || ' ' || setting) FROM commits`).Scan(&seen))
			if want := []string{"aggregates on", "events on", "gates on", "leases on", "parked on"}; !slices.Equal(seen, want) {
				t.Errorf("commits with the settings %q, want %q", seen, want)
			}
		})
	}
}

// A server that refuses the login did not process the request, so the store counts as away.
func TestRefusedLoginIsNoAnswer(t *testing.T) {
	t.Parallel()
	var used []error
	db, err := postgres.Open(strings.Replace(database(t), "feedbox@", "nosuch@", 1), &postgres.DBOptions{Used: func(err error) { used = append(used, err) }})
	must(t, err)
	defer db.Close()
	_, err = db.Clock(t.Context())
	if reply, ok := errors.AsType[*pgconn.PgError](err); !ok || !strings.HasPrefix(reply.Code, "28") || len(used) != 1 || used[0] == nil {
		t.Errorf("%v; reported %v, want the refusal of the login", err, used)
	}
}
