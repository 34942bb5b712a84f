package pairs

import (
	"os"
	"slices"
	"sync"
	"testing"

	"feedbox/tests/servers"
	"feedbox/tests/testkit"
)

// ends has the clean-up functions of shared servers, in the order of their start.
var ends struct {
	mu    sync.Mutex // guards calls
	calls []func()
}

func TestMain(m *testing.M) {
	code := testkit.Run(m)
	for _, end := range slices.Backward(ends.calls) {
		end()
	}
	os.Exit(code)
}

// shared is a server that is started once for all tests.
type shared[S any] struct {
	start  func(t servers.TB) S
	mu     sync.Mutex // guards what follows
	ready  bool
	server S
}

// get starts the server unless it runs already. If it is not installed, t is skipped.
func (s *shared[S]) get(t *testing.T) S {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ready {
		s.server = s.start(lasting{t})
		s.ready = true
	}
	return s.server
}

// lasting is a test whose servers run until the tests of the package have ended.
type lasting struct{ *testing.T }

// Cleanup implements servers.TB.
func (lasting) Cleanup(end func()) {
	ends.mu.Lock()
	defer ends.mu.Unlock()
	ends.calls = append(ends.calls, end)
}

// TempDir implements servers.TB.
func (l lasting) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "feedbox-pairs-")
	must(l.T, err)
	l.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
