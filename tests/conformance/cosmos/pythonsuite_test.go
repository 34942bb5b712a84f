//go:build conformance

package cosmos

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// The tests of azure-cosmos 4.17.1 (Python) with the mark cosmosEmulator, unmodified.
const (
	pythonTests  = 1198 // that must run, because otherwise a smaller suite would pass unnoticed
	pythonPassed = 1185 // at least
	pythonShare  = 3    // runs one file in this many, unless FEEDBOX_CONFORMANCE is full
)

// pythonSuite has the SDK, the packages that its tests import, and the source distribution,
// which contains the tests.
var pythonSuite = &sdk{
	tools: []string{"python3", "tar"},
	install: "python3 -m venv venv && venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-suite.txt && " +
		"venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: -r requirements.txt && tar xzf azure_cosmos-*.tar.gz",
	program: "../venv/bin/python",
}

// pythonExceptions lists the failing tests with the reason. A test that passes must be
// removed from it.
var pythonExceptions = map[string]string{
	"test_encoding.py::TestEncoding::test_create_stored_procedure_with_line_separator_para_seperator_next_line_unicodes": "stored procedures are refused", //nolint:misspell // its name
	"test_multimaster.py::TestMultiMaster::test_tentative_writes_header_present":                                         "stored procedures are refused",
	"test_multimaster.py::TestMultiMaster::test_tentative_writes_header_not_present":                                     "stored procedures are refused",
}

// TestPythonSuite runs each file of the suite in a separate process, because some expect
// empty shared containers.
func TestPythonSuite(t *testing.T) {
	full := os.Getenv("FEEDBOX_CONFORMANCE") == "full"
	dir := pythonSuite.folder(t, "the Python SDK's own tests were")
	found, err := filepath.Glob(filepath.Join(dir, "..", "azure_cosmos-*", "tests"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the tests are in %v: %v", found, err)
	}
	files := pythonFiles(t, found[0])
	files = slices.DeleteFunc(files, func(file string) bool { return !isMarked(t, file) })
	if !full {
		var some []string
		for i := 0; i < len(files); i += pythonShare {
			some = append(some, files[i])
		}
		files = some
	}
	if len(files) == 0 {
		t.Fatal("there are no tests")
	}
	cosmosemu.StartT(t, &cosmosemu.Options{Addr: "127.0.0.1:8081", Host: "localhost:8081", TLS: true, ContainerRetention: true})
	s := &suiteRun{dir: dir, tests: found[0]}
	queue := make(chan string)
	var workers sync.WaitGroup
	for range 2 * runtime.NumCPU() { // some tests sleep
		workers.Go(func() {
			for file := range queue {
				s.run(t, file)
			}
		})
	}
	for _, file := range files {
		queue <- file
	}
	close(queue)
	workers.Wait()
	t.Logf("azure-cosmos' own tests: %d of %d passed, of %d files", s.passed, s.passed+s.failed, len(files))
	if full && (s.passed+s.failed != pythonTests || s.passed < pythonPassed) {
		t.Errorf("expected are %d tests, of which %d pass", pythonTests, pythonPassed)
	}
}

func pythonFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(path), "test_") && filepath.Ext(path) == ".py" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// isMarked reports whether a file has tests for the emulator.
func isMarked(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(text, []byte("pytest.mark.cosmosEmulator"))
}

type suiteRun struct {
	dir, tests string

	mu             sync.Mutex
	passed, failed int
}

// tries is the number of runs of a file with unexpected failures. Tests that replace functions
// of the SDK sometimes see its background requests and fail.
const tries = 3

// run runs a file until each of its tests has passed, at most tries times.
func (s *suiteRun) run(t *testing.T, file string) {
	t.Helper()
	results := s.try(t, file)
	for range tries - 1 {
		if !unexpected(results) {
			break
		}
		again := s.try(t, file)
		for test, failure := range results {
			if failure != "" && again[test] == "" {
				t.Logf("passed when run again: %s\n%s", test, lastLines(failure, 3))
				results[test] = ""
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for test, failure := range results {
		reason, known := pythonExceptions[test]
		switch {
		case failure == "" && known:
			t.Errorf("%s passes: take it out of the table of exceptions", test)
		case failure == "":
			s.passed++
		case known:
			s.failed++
			t.Logf("known: %s: %s", test, reason)
		default:
			s.failed++
			t.Errorf("%s\n%s", test, lastLines(failure, 12))
		}
	}
}

// report has the fields of pytest's report that we use.
type report struct {
	Cases []struct {
		Class    string    `xml:"classname,attr"`
		Name     string    `xml:"name,attr"`
		Skipped  *struct{} `xml:"skipped"`
		Failures []failure `xml:"failure"`
		Errors   []failure `xml:"error"`
	} `xml:"testsuite>testcase"`
}

type failure struct {
	Text string `xml:",chardata"`
}

// try runs a file and returns the message of each failed test, "" for the others.
func (s *suiteRun) try(t *testing.T, file string) map[string]string {
	t.Helper()
	name := filepath.Base(file)
	written := filepath.Join(s.dir, name+".xml")
	pytest := exec.CommandContext(t.Context(), filepath.Join(s.dir, pythonSuite.program), "-m", "pytest", "-q",
		"-m", "cosmosEmulator", "-p", "no:cacheprovider", "-W", "ignore", "-c", os.DevNull, "--rootdir", ".", "--junitxml", written, file)
	pytest.Dir = s.tests
	stub, err := filepath.Abs("pythonsuite")
	if err != nil {
		t.Error(err)
		return nil
	}
	pytest.Env = append(os.Environ(), "PYTHONPATH="+stub, "PYTHONDONTWRITEBYTECODE=1")
	text, runErr := pytest.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(runErr, &exit) && exit.ExitCode() == 5 { // nothing to run
		return nil
	}
	var r report
	xmlText, err := os.ReadFile(written)
	if err == nil {
		err = xml.Unmarshal(xmlText, &r)
	}
	if err != nil || len(r.Cases) == 0 {
		t.Errorf("%s: %v, %v\n%s", name, runErr, err, text)
		return nil
	}
	results := make(map[string]string)
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Skipped != nil {
			continue
		}
		test := name + "::" + c.Class[strings.LastIndexByte(c.Class, '.')+1:] + "::" + c.Name
		if results[test] == "" {
			results[test] = failureText(slices.Concat(c.Failures, c.Errors))
		}
	}
	return results
}

func unexpected(results map[string]string) bool {
	for test, failure := range results {
		if failure != "" && pythonExceptions[test] == "" {
			return true
		}
	}
	return false
}

func failureText(all []failure) string {
	if len(all) == 0 {
		return ""
	}
	return "failed: " + all[0].Text
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
