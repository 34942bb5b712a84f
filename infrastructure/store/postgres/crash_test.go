package postgres_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/changefeed"
	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
)

// A crashed server reuses the ids of transactions that left nothing in its log. A position beyond
// the last stored event would miss later events.
func TestCrashedServerReusesTransactionIDs(t *testing.T) {
	t.Parallel()
	server := servers.StartPostgres(t)
	db, pool := openAt(t, server.Database(t))
	for _, setting := range []string{"wal_writer_delay = '10s'", "bgwriter_lru_maxpages = 0", "autovacuum = off"} { // nothing writes the log but commits
		_, err := pool.Exec(t.Context(), "ALTER SYSTEM SET "+setting)
		must(t, err)
	}
	_, err := pool.Exec(t.Context(), "SELECT pg_reload_conf()")
	must(t, err)
	_, err = pool.Exec(t.Context(), insertEvent, 1, "early", "early", `{"id":"early"}`)
	must(t, err)

	feed, err := postgres.NewFeed(db, &postgres.FeedOptions{Ranges: 1})
	must(t, err)
	whole := changefeed.FeedRange{Max: "FF"}
	read := func(continuation string, since time.Time) *changefeed.Page {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: whole, Continuation: continuation, Since: since})
		must(t, err)
		return page
	}
	position := read("", time.Time{}).Continuation
	for attempt := range 10 {
		var burnt, next uint64
		for range 300 {
			must(t, pool.QueryRow(t.Context(), "SELECT pg_current_xact_id()").Scan(&burnt))
		}
		end, err := feed.Now(t.Context(), whole)
		must(t, err)
		later := read("", time.Now().Add(time.Hour)).Continuation
		if page := read(position, time.Time{}); len(page.Items) != 0 { // the feed may remember how far it has looked
			t.Fatalf("%d events that were not stored", len(page.Items))
		}
		server.Kill(t)
		server.Start(t)
		pool = reconnect(t, pool)
		retry(t, func() error { // a read that fails forgets what it knew, which would hide what it must not know
			_, err := db.Clock(t.Context())
			return err
		})
		id := fmt.Sprint("late", attempt)
		must(t, pool.QueryRow(t.Context(), insertEvent+" RETURNING xid", 1, "late", id, fmt.Sprintf(`{"id":%q}`, id)).Scan(&next))
		for _, from := range []struct{ what, position string }{
			{"the last position", position}, {"the end of the feed", end}, {"a read without events", later},
		} {
			page := read(from.position, time.Time{})
			if len(page.Items) != 1 {
				t.Errorf("after %s, %s: %d events, want the one of transaction %d", from.what, from.position, len(page.Items), next)
			}
		}
		if next <= burnt {
			return
		}
		position = read(position, time.Time{}).Continuation
	}
	t.Error("ten crashes, and no id was given out twice: the test has shown nothing")
}

// Adopters emit in transactions that need not be on disk by their settings, and the server is killed. A
// relay that continues from its position in memory receives each event once, and all that were
// acknowledged.
func TestEventsThatWereReadSurviveACrash(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(seedOf(t), 0))
	server := servers.StartPostgres(t)
	db, pool := openAt(t, server.Database(t))
	for _, setting := range []string{"wal_writer_delay = '10s'", "bgwriter_lru_maxpages = 0", "synchronous_commit = off"} {
		_, err := pool.Exec(t.Context(), "ALTER SYSTEM SET "+setting)
		must(t, err)
	}
	_, err := pool.Exec(t.Context(), "SELECT pg_reload_conf()")
	must(t, err)
	_, err = pool.Exec(t.Context(), `CREATE TABLE orders (id text)`)
	must(t, err)
	in := newInbox(t, db, 2)
	var acknowledged [3]atomic.Int64
	for range 5 {
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for n := 0; ; n++ {
					err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
						if _, err := tx.Exec(t.Context(), `INSERT INTO orders VALUES ('x')`); err != nil || n%3 == 0 {
							return cmp.Or(err, errors.New("rolled back"))
						}
						return postgres.Emit(t.Context(), tx, fmt.Sprint(n%3), postgres.Event{Action: "A"})
					})
					switch {
					case err == nil:
						acknowledged[n%3].Add(1)
					case n%3 != 0:
						return // the server was killed
					}
				}
			})
		}
		end := time.Now().Add(time.Duration(50+random.IntN(200)) * time.Millisecond)
		within(t, "some events are acknowledged, for a random time", func() bool {
			in.read(t, 5)
			return time.Now().After(end) && acknowledged[1].Load() > 0 && acknowledged[2].Load() > 0
		})
		server.Kill(t)
		writers.Wait()
		server.Start(t)
		pool = reconnect(t, pool)
		retry(t, func() error { _, err := db.Clock(t.Context()); return err })
	}
	within(t, "all stored events are read", func() bool {
		in.read(t, 50)
		var stored int64
		must(t, pool.QueryRow(t.Context(), `SELECT sum(sequence) FROM keys`).Scan(&stored))
		return stored == in.last["1"]+in.last["2"]
	})
	for key := range acknowledged {
		if n := acknowledged[key].Load(); in.last[fmt.Sprint(key)] < n || key > 0 && n == 0 {
			t.Errorf("key %d: %d events received, %d acknowledged", key, in.last[fmt.Sprint(key)], n)
		}
	}
}

// retry repeats do while it fails, because the pool has connections to the killed server.
func retry(t *testing.T, do func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
}

// reconnect returns a new pool in place of one whose server was killed.
func reconnect(t *testing.T, old *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), old.Config())
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}
