//go:build conformance && rust

package cosmos

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// rustSDK downloads the Cosmos DB crates of Microsoft's Rust SDK, which contain their tests.
var rustSDK = &sdk{
	tools: []string{"cargo"},
	install: "cargo new --quiet --vcs none --lib crates && cd crates && cargo add --quiet azure_data_cosmos@=1.1.0-beta.1 azure_data_cosmos_driver@=1.1.0-beta.1 && " +
		"cargo metadata --format-version 1 > crates.json",
}

// rustSuite is one test program of a crate, run unmodified and with the crate's own lock file.
type rustSuite struct {
	crate, program, features string
	tls                      bool              // else HTTP/2 without TLS
	tests, ignored           int               // that must run, and that the suite ignores: a smaller suite must not pass unnoticed
	exceptions               map[string]string // failing tests with the reason
}

// The driver's suite expects plain HTTP, or that nothing checks the certificate.
var rustSuites = []rustSuite{
	{crate: "azure_data_cosmos_driver", program: "emulator", features: "__internal_testing,fault_injection", tests: 29, ignored: 12},
	{
		crate: "azure_data_cosmos_driver", program: "gateway_query_plan_comparison", features: "__internal_testing,fault_injection", tests: 79,
		exceptions: map[string]string{
			"gw_complex_combined": "ORDER BY with GROUP BY is refused: the suite's plan of it has no order, so SDKs would return the groups unsorted",
			"gw_complex_with_hpk": "ORDER BY with GROUP BY is refused",
		},
	},
	{crate: "azure_data_cosmos", program: "emulator", features: "control_plane,fault_injection,key_auth", tls: true, tests: 162, ignored: 4},
}

// Limits of one suite. A build takes 5 minutes on two cores if nothing is cached.
const (
	rustBuildLimit = 40 * time.Minute
	rustRunLimit   = 15 * time.Minute
	rustTries      = 3 // of a failed test: one sets the proxy of the whole process, another counts requests
)

// TestRustSuites runs each suite against a new emulator. A test that fails must be in the table
// of exceptions, and a test of that table must fail.
func TestRustSuites(t *testing.T) {
	home := rustSDK.folder(t, "the Rust SDK's own tests were")
	sources := rustSources(t, filepath.Join(home, "..", "crates", "crates.json"))
	for _, s := range rustSuites {
		t.Run(s.crate+"/"+s.program, func(t *testing.T) {
			srv := cosmosemu.StartT(t, &cosmosemu.Options{TLS: s.tls, ContainerRetention: true})
			dir, env := sources[s.crate], rustEnv(t)
			s.cargo(t, dir, env, rustBuildLimit, "--no-run") // may download, so it needs the usual authorities
			env = append(env, "AZURE_COSMOS_TEST_MODE=required", "AZURE_COSMOS_CONNECTION_STRING=AccountEndpoint="+srv.Endpoint()+";AccountKey="+srv.Key()+";")
			if s.tls {
				authority := filepath.Join(t.TempDir(), "authority.pem")
				if err := os.WriteFile(authority, srv.CertificatePEM(), 0o600); err != nil {
					t.Fatal(err)
				}
				env = append(env, "SSL_CERT_FILE="+authority)
			}
			run := func(more ...string) string { return s.cargo(t, dir, env, rustRunLimit, more...) }
			output := run()
			s.judge(t, s.again(t, rustResults(output), run), output)
		})
	}
}

// rustSources returns the folder of each crate, where cargo has unpacked it.
func rustSources(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Packages []struct {
			Name string `json:"name"`
			Path string `json:"manifest_path"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &metadata); err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{}
	for _, p := range metadata.Packages {
		folders[p.Name] = filepath.Dir(p.Path)
	}
	return folders
}

// rustEnv keeps what was built for the next run, without debug symbols, which would take
// gigabytes.
func rustEnv(t *testing.T) []string {
	t.Helper()
	env := append(os.Environ(), `RUSTFLAGS=--cfg test_category="emulator"`, "CARGO_PROFILE_DEV_DEBUG=0", "CARGO_INCREMENTAL=0", "RUST_BACKTRACE=0")
	if os.Getenv("CARGO_TARGET_DIR") != "" {
		return env
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "CARGO_TARGET_DIR="+filepath.Join(cache, "feedbox-rust-suites"))
}

// cargo builds or runs the suite and returns its output. Failed tests are no error here.
func (s *rustSuite) cargo(t *testing.T, dir string, env []string, limit time.Duration, more ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, "cargo", append([]string{"test", "--locked", "--features", s.features, "--test", s.program}, more...)...)
	run.Dir, run.Env = dir, env
	text, err := run.CombinedOutput()
	if err != nil && (ctx.Err() != nil || !strings.Contains(string(text), "\ntest result: ")) {
		t.Fatalf("%s: %v\n%s", run, err, lastLines(string(text), 40))
	}
	return string(text)
}

var (
	rustResult = regexp.MustCompile(`(?m)^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)`)
	rustReason = regexp.MustCompile(`(?m)^---- (\S+) stdout ----$`)
)

// rustResults returns the result of each test: ok, FAILED or ignored.
func rustResults(output string) map[string]string {
	results := map[string]string{}
	for _, m := range rustResult.FindAllStringSubmatch(output, -1) {
		results[m[1]] = m[2]
	}
	return results
}

// again runs the tests that failed unexpectedly again, alone.
func (s *rustSuite) again(t *testing.T, results map[string]string, run func(...string) string) map[string]string {
	t.Helper()
	for range rustTries - 1 {
		failed := []string{"--", "--exact"}
		for name, result := range results {
			if result == "FAILED" && s.exceptions[name] == "" {
				failed = append(failed, name)
			}
		}
		if len(failed) == 2 {
			break
		}
		for name, result := range rustResults(run(failed...)) {
			if result == "ok" {
				t.Logf("passed when run again: %s", name)
				results[name] = result
			}
		}
	}
	return results
}

// judge compares the results with the table of exceptions.
func (s *rustSuite) judge(t *testing.T, results map[string]string, output string) {
	t.Helper()
	counts := map[string]int{}
	for name, result := range results {
		counts[result]++
		reason, known := s.exceptions[name]
		switch {
		case result == "FAILED" && !known:
			t.Errorf("%s\n%s", name, rustFailure(output, name))
		case result == "FAILED":
			t.Logf("known: %s: %s", name, reason)
		case known:
			t.Errorf("%s passes: remove it from the table of exceptions", name)
		}
	}
	ran := counts["ok"] + counts["FAILED"]
	t.Logf("%s, %s: %d of %d passed, %d ignored by the suite", s.crate, s.program, counts["ok"], ran, counts["ignored"])
	if ran != s.tests || counts["ignored"] != s.ignored {
		t.Errorf("expected are %d tests, and %d that the suite ignores", s.tests, s.ignored)
	}
}

// rustFailure returns the last lines that a failed test has written.
func rustFailure(output, name string) string {
	_, text, _ := strings.Cut(output, "---- "+name+" stdout ----\n")
	if next := rustReason.FindStringIndex(text); next != nil {
		text = text[:next[0]]
	}
	return lastLines(text, 12)
}
