package cosmos

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/lab/wire"
	"feedbox/infrastructure/lab/wire/cosmoswire"
	"feedbox/tests/testkit"
)

// homes are the folders of SDKs, which tests with the build tag conformance create.
var homes struct {
	mu  sync.Mutex // guards all
	all []string
}

func TestMain(m *testing.M) {
	code := testkit.Run(m)
	for _, home := range homes.all {
		_ = os.RemoveAll(home)
	}
	os.Exit(code)
}

// TestWire runs every script on its own container, of one range and of four on our emulator.
func TestWire(t *testing.T) {
	known := readKnownIssues(t)
	w := openTarget(t, 1)
	play(t, w, "scripts", known)
	if w.Emulator {
		play(t, openTarget(t, 4), "scripts of four ranges", known)
	}
}

// play runs the scripts. A fault is a failure unless it is a known issue of the endpoint.
func play(t *testing.T, w *cosmoswire.Target, name string, known map[string]string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if w.Emulator {
			t.Parallel()
		}
		for i := range cosmoswire.Scripts {
			s := &cosmoswire.Scripts[i]
			t.Run(s.Name, func(t *testing.T) {
				t.Logf("source: %s", s.Source)
				if w.Emulator {
					t.Parallel()
				}
				if missing := s.Needs(w); missing != "" {
					t.Skipf("SKIPPED: %s; FEEDBOX_TEST_COSMOS_SPLIT=yes allows splits", missing)
				}
				o := w.Play(t.Context(), s)
				faults, issue := strings.Join(o.Details, "\n"), known[s.Topic]
				switch {
				case o.Verdict != wire.Confirmed && issue != "":
					t.Skipf("SKIPPED over a known issue: %s\n%s", issue, faults)
				case o.Verdict != wire.Confirmed:
					t.Errorf("%s: %s", o.Verdict, faults)
				case issue != "":
					t.Logf("not met this time: %s", issue)
				}
			})
		}
	})
}

// openTarget connects to the endpoint in the environment, or to a new emulator whose containers
// have a number of physical ranges.
func openTarget(t *testing.T, ranges int) *cosmoswire.Target {
	t.Helper()
	w := &cosmoswire.Target{Endpoint: os.Getenv("FEEDBOX_TEST_COSMOS_ENDPOINT"), Splits: os.Getenv("FEEDBOX_TEST_COSMOS_SPLIT") == "yes"}
	kind, key := cmp.Or(os.Getenv("FEEDBOX_TEST_COSMOS_KIND"), "azure"), cmp.Or(os.Getenv("FEEDBOX_TEST_COSMOS_KEY"), cosmosemu.WellKnownKey)
	if w.Endpoint == "" {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: ranges, VersionRetention: time.Hour})
		kind, w.Ranges, w.Endpoint, key = "ours", ranges, srv.Endpoint(), srv.Key()
	}
	switch kind {
	case "azure", "vnext":
	case "ours":
		w.Emulator = true
	default:
		t.Fatalf("FEEDBOX_TEST_COSMOS_KIND is %q: it must be azure, vnext or ours", kind)
	}
	t.Logf("%s at %s", kind, w.Endpoint)
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_COSMOS_KEY: %v", err)
	}
	if w.Client, err = azcosmos.NewClientWithKey(w.Endpoint, credential, cosmosfeed.ClientOptions(nil)); err != nil {
		t.Fatalf("FEEDBOX_TEST_COSMOS_ENDPOINT: %v", err)
	}
	makeDatabase(t, w)
	return w
}

func makeDatabase(t *testing.T, w *cosmoswire.Target) {
	t.Helper()
	w.Database = "feedbox-conformance-" + wire.RandomName()
	throughput := azcosmos.NewManualThroughputProperties(1000)
	_, err := w.Client.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: w.Database}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &throughput})
	if err != nil {
		t.Fatalf("create database %s at %s: %v", w.Database, w.Endpoint, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		db, err := w.Client.NewDatabase(w.Database)
		if err == nil {
			_, err = db.Delete(ctx, nil)
		}
		if err != nil {
			t.Errorf("database %s is left behind: %v", w.Database, err)
		}
	})
}

// readKnownIssues reads a file of lines "topic  issues  what happens".
func readKnownIssues(t *testing.T) map[string]string {
	t.Helper()
	path := os.Getenv("FEEDBOX_TEST_KNOWN_ISSUES")
	if path == "" || os.Getenv("FEEDBOX_TEST_COSMOS_KIND") != "vnext" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("FEEDBOX_TEST_KNOWN_ISSUES: %v", err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			topic, _, _ := strings.Cut(line, " ")
			known[topic] = line
		}
	}
	return known
}

// UNVERIFIED.md names every script, and no other.
func TestScriptsAreNamedInUnverified(t *testing.T) {
	named := wire.Scripts()
	for i := range cosmoswire.Scripts {
		name := "cosmos/" + cosmoswire.Scripts[i].Name
		if !named[name] {
			t.Errorf("script %s verifies nothing that UNVERIFIED.md lists", name)
		}
		delete(named, name)
	}
	for name := range named {
		if strings.HasPrefix(name, "cosmos/") {
			t.Errorf("UNVERIFIED.md names a script %s that does not exist", name)
		}
	}
}
