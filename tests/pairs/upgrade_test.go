//go:build faults

package pairs

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"feedbox/tests/testenv"
	"feedbox/tests/testkit"
)

// previous is the last commit whose programs have the schema version before the current one.
const previous = "c87c705fd83637ccc3168d32d3966690aedafa00"

// A rolling upgrade on PostgreSQL: under load, the schema is migrated while only programs of the previous
// version run, then programs of both versions write the same contacts and share the leases, then those of
// the previous version stop, one of them by kill -9. Nothing is lost or reordered.
func TestRollingUpgrade(t *testing.T) {
	if testenv.Share(t, "FEEDBOX_FAULT_SCALE", 1) < 1 {
		t.Skip("it builds the programs of the previous version, which takes minutes: only at the full count of faults (make nightly)")
	}
	old, now := testkit.Binaries{Feedbox: programOf(t, previous)}, testkit.Build(t)
	w := (&world{store: openPostgres(t), broker: openServiceBus(t), binaries: old}).start(t) // without variables that the previous version does not know

	// The balancer of the APIs.
	var backends atomic.Pointer[[]*url.URL]
	var requests atomic.Int64
	use := func(addresses ...string) {
		list := make([]*url.URL, len(addresses))
		for i, a := range addresses {
			var err error
			list[i], err = url.Parse(a)
			must(t, err)
		}
		backends.Store(&list)
	}
	first := w.api
	use(first)
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		list := *backends.Load()
		r.SetURL(list[int(requests.Add(1))%len(list)])
	}})
	defer balancer.Close()
	w.api = balancer.URL
	oldAPI := w.apis
	oldRelays := []*testkit.Process{w.relay(t), w.relay(t)}
	// owned waits until the owners of all leases are these relays.
	owned := func(what string, relays ...*testkit.Process) {
		t.Helper()
		testkit.Eventually(t, time.Minute, what, func() bool {
			cmd := exec.CommandContext(t.Context(), w.binaries.Feedbox, "leases", "ls", "-o", "json")
			cmd.Env = testkit.Environ(w.env...)
			var leases []struct{ Owner string }
			owners := map[string]bool{}
			if out, err := cmd.Output(); err != nil || json.Unmarshal(out, &leases) != nil {
				return false // it fails until all leases are created
			}
			for _, l := range leases {
				owners[l.Owner] = true
			}
			return len(owners) == len(relays) && !slices.ContainsFunc(relays, func(p *testkit.Process) bool { return !owners[p.Name] })
		})
	}
	owned("the relays of the previous version own the leases", oldRelays...)

	w.under(t, w.load(t, testkit.Seed(t, 1)), func(changed func()) {
		w.binaries = now
		before := schemaVersion(t, w.store)
		cmd := exec.CommandContext(t.Context(), now.Feedbox, "migrate")
		cmd.Env = testkit.Environ(w.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("migrate: %v\n%s", err, out)
		}
		if after := schemaVersion(t, w.store); after != before+1 {
			t.Errorf("the schema has version %d, and had %d before: set previous to the last commit of the version before", after, before)
		}
		changed() // by programs of the previous version, on the new schema
		_, second := testkit.StartAPIWith(t, now, append(slices.Clone(w.env), "FEEDBOX_API_LISTEN=127.0.0.1:0"))
		use(first, second)
		relay := w.relay(t)
		owned("relays of both versions own leases", append(slices.Clone(oldRelays), relay)...)
		changed()
		oldRelays[0].Kill()
		changed()
		use(second)
		for _, p := range []*testkit.Process{oldRelays[1], oldAPI} {
			if code := p.Terminate(t.Context()); code != 0 {
				t.Errorf("%s of the previous version ended with %d", p.Name, code)
			}
		}
		owned("the relay of the new version owns all leases", relay)
		changed()
	})
}

func schemaVersion(t *testing.T, s *store) (version int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url)
	must(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	must(t, conn.QueryRow(t.Context(), `SELECT max(version) FROM feedbox.schema_version`).Scan(&version))
	return version
}

// programOf builds the program of a commit.
func programOf(t *testing.T, commit string) string {
	t.Helper()
	folder := t.TempDir()
	root, err := filepath.Abs("../..") // git archive would archive the current folder only
	must(t, err)
	find := exec.CommandContext(t.Context(), "git", "cat-file", "-e", commit+"^{commit}")
	if out, err := find.CombinedOutput(); err != nil {
		t.Skipf("commit %s of the previous version is not in this repository: %v: %s", commit, err, out)
	}
	archive := filepath.Join(folder, "source.tar")
	for _, step := range [][]string{
		{"git", "archive", "--output", archive, commit},
		{"tar", "-xf", archive, "-C", folder},
		{"go", "build", "-o", filepath.Join(folder, "feedbox"), "./cmd/feedbox"},
	} {
		cmd := exec.CommandContext(t.Context(), step[0], step[1:]...)
		if cmd.Dir = folder; step[0] == "git" {
			cmd.Dir = root
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", step, err, out)
		}
	}
	return filepath.Join(folder, "feedbox")
}
