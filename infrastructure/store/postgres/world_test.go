package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
)

// TestMain runs the tests on one server, which is started by the first test that needs it.
//
// Tests of the feed are not parallel, because an open transaction anywhere on the server delays
// every feed. Tests without a feed are parallel: they run after those.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(code)
}

// shared is the server of all tests, except those that kill it.
var shared struct {
	sync.Mutex
	server  *servers.Postgres
	url     string // of the database that tests share by schemas
	schemas int
	end     func()
}

// longLived collects the cleanups of the server until all tests have ended.
type longLived struct {
	testing.TB
	ends []func()
}

func (l *longLived) Cleanup(end func()) { l.ends = append(l.ends, end) }

// database returns the URL of an empty database.
func database(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	return newDatabase(t)
}

// newDatabase needs the lock of shared.
func newDatabase(t testing.TB) string {
	t.Helper()
	if shared.server == nil {
		all := &longLived{TB: t}
		shared.server = servers.StartPostgres(all)
		shared.end = func() {
			for _, end := range all.ends {
				end()
			}
		}
	}
	return shared.server.Database(t)
}

// open returns an empty DB: a new schema of a shared database, because that is created much
// faster than a database.
func open(t testing.TB) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(newSchema(t))
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Migrate(t.Context()))
	return db
}

func newSchema(t testing.TB) (url string, o *postgres.DBOptions) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.url == "" {
		shared.url = newDatabase(t)
	}
	shared.schemas++
	return shared.url, &postgres.DBOptions{Schema: fmt.Sprint("s", shared.schemas)}
}

// openAt opens the database at url, and a pool for the test's own statements.
func openAt(t testing.TB, url string) (*postgres.DB, *pgxpool.Pool) {
	t.Helper()
	db, err := postgres.Open(url, nil)
	must(t, err)
	t.Cleanup(db.Close)
	must(t, db.Migrate(t.Context()))
	pool, err := pgxpool.New(context.Background(), url+"&search_path=feedbox")
	must(t, err)
	t.Cleanup(pool.Close)
	return db, pool
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within calls done until it reports true, for at most a minute. The server may have a
// transaction of its own open, which delays the feed.
func within(t testing.TB, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func seedOf(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("FEEDBOX_TEST_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		must(t, err)
	}
	t.Logf("seed %d: FEEDBOX_TEST_SEED=%d go test ./infrastructure/store/postgres -run '^%s$'", seed, seed, t.Name())
	return seed
}
