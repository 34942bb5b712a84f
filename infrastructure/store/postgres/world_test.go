package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"feedbox/infrastructure/store/postgres"
	"feedbox/tests/servers"
)

// TestMain runs the tests on one server, which the first that needs it starts.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.end != nil {
		shared.end()
	}
	os.Exit(code)
}

// shared is the server of all tests but those that kill it.
var shared struct {
	sync.Mutex
	server *servers.Postgres
	end    func()
}

// longLived is a test that lasts as long as all of them.
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

// open returns a database with the schema.
func open(t testing.TB) *postgres.DB {
	t.Helper()
	db, _ := openAt(t, database(t))
	return db
}

// openAt opens the database at url, and a pool beside it for a test's own statements.
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
