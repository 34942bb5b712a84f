//go:build conformance

package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// suiteModule is the client whose emulator tests are run, in the version of go.mod.
const suiteModule = "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

// suiteSize is the number of emulator tests of v1.5.0. Otherwise a smaller suite would pass
// unnoticed.
const suiteSize = 43

// TestSuite builds the suite from the module cache, unmodified, and runs each of
// its emulator tests against a fresh emulator.
func TestSuite(t *testing.T) {
	binary := buildSuite(t)
	names := suiteTests(t, filepath.Dir(binary))
	if len(names) != suiteSize {
		t.Errorf("the suite has %d emulator tests, expected %d", len(names), suiteSize)
	}
	passed := 0
	for _, name := range names {
		if t.Run(name, func(t *testing.T) { runSuiteTest(t, binary, name) }) {
			passed++
		}
	}
	t.Logf("azcosmos emulator suite: %d of %d passed", passed, len(names))
}

// buildSuite copies the module from the read-only cache and compiles its tests with its
// own go.mod.
func buildSuite(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-json", suiteModule).Output()
	if err != nil {
		t.Fatalf("find %s: %v", suiteModule, err)
	}
	var module struct{ Dir, Version string }
	if err := json.Unmarshal(out, &module); err != nil || module.Dir == "" {
		t.Fatalf("find %s: %v (is it downloaded?)", suiteModule, err)
	}
	t.Logf("%s %s", suiteModule, module.Version)
	dir := filepath.Join(t.TempDir(), "azcosmos")
	if err := os.CopyFS(dir, os.DirFS(module.Dir)); err != nil {
		t.Fatal(err)
	}
	makeWritable(t, dir)
	binary := filepath.Join(dir, "suite.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("compile the suite: %v\n%s", err, text)
	}
	return binary
}

func makeWritable(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// suiteTests lists the tests in the suite's emulator files.
func suiteTests(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "emulator_*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

// runSuiteTest runs one test of the suite against an emulator with the settings of the
// vendor's CI.
func runSuiteTest(t *testing.T, binary, name string) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{
		Addr: "127.0.0.1:8081", ComputeAddr: "127.0.0.1:8903", Host: "localhost:8081",
		TLS: true, Consistency: "Strong", RoutingGateway: name == "TestItemIdEncodingRoutingGW",
	})
	cert := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(cert, srv.CertificatePEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.v", "-test.run", fmt.Sprintf("^%s$", name))
	cmd.Dir = filepath.Dir(binary)
	cmd.Env = append(os.Environ(), "EMULATOR=1", "SSL_CERT_FILE="+cert)
	text, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(string(text), "--- SKIP"):
		t.Errorf("the test skipped itself\n%s", text)
	case !strings.Contains(string(text), "--- PASS: "+name):
		t.Errorf("the test did not run\n%s", text)
	}
}
