package firestore_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"feedbox/infrastructure/store/firestore"
	"feedbox/tests/servers"
)

// TestMain runs the tests on one emulator, which is started by the first test that needs it.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, end := range shared.ends {
		end()
	}
	os.Exit(code)
}

// shared is the emulator of all tests. Each test has its own project.
var shared longLived

// longLived collects the cleanups of the emulator until all tests have ended.
type longLived struct {
	testing.TB
	sync.Mutex
	address  string
	projects int
	ends     []func()
}

func (l *longLived) Cleanup(end func()) { l.ends = append(l.ends, end) }

// project returns the options of an empty database.
func project(t testing.TB) firestore.Options {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.TB = t; shared.address == "" {
		shared.address = servers.StartFirestore(&shared)
	}
	shared.projects++
	return firestore.Options{Project: fmt.Sprint("test-", shared.projects), Emulator: shared.address}
}

// open returns an empty database.
func open(t testing.TB) *firestore.DB {
	t.Helper()
	return openAt(t, project(t))
}

func openAt(t testing.TB, o firestore.Options) *firestore.DB {
	t.Helper()
	db, err := firestore.Open(t.Context(), o)
	must(t, err)
	t.Cleanup(db.Close)
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
