//go:build conformance

package cosmos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sdk is the Cosmos DB client of another language.
type sdk struct {
	tools   []string // that must be installed
	install string   // shell command that installs the packages of folder sdks into the home
	program string   // runs a script, relative to a folder below the home

	once sync.Once
	home string
	err  error
}

var (
	javascript = &sdk{
		tools:   []string{"node", "npm"},
		install: "npm ci --no-audit --no-fund",
		program: "node",
	}
	python = &sdk{
		tools:   []string{"python3"},
		install: "python3 -m venv venv && venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt",
		program: "../venv/bin/python",
	}
)

// folder returns an empty folder in which scripts find the SDK. The SDK is installed once. If
// it cannot be installed, the test is skipped; what names the omitted check.
func (s *sdk) folder(t *testing.T, what string) string {
	t.Helper()
	for _, tool := range s.tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s NOT checked: %s is not installed", what, tool)
		}
	}
	s.once.Do(func() { s.err = s.prepare() })
	if s.err != nil {
		t.Skipf("SKIPPED: %s NOT checked: %v", what, s.err)
	}
	dir, err := s.newFolder()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// prepare installs the SDK in a folder that is kept after the first test.
func (s *sdk) prepare() (err error) {
	if s.home, err = os.MkdirTemp("", "feedbox-sdk-"); err != nil {
		return err
	}
	homes.mu.Lock()
	homes.all = append(homes.all, s.home)
	homes.mu.Unlock()
	if err := os.CopyFS(s.home, os.DirFS("sdks")); err != nil {
		return err
	}
	install := exec.Command("sh", "-c", s.install)
	install.Dir = s.home
	if text, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.install, err, text)
	}
	return nil
}

// newFolder creates a folder below the SDK's, because node searches packages upwards.
func (s *sdk) newFolder() (string, error) { return os.MkdirTemp(s.home, "scripts-") }

// run runs a script to its end and logs its output, except lines that begin with ok.
func (s *sdk) run(t *testing.T, dir string, env []string, script ...string) (text []byte, err error) {
	t.Helper()
	program := s.program
	if strings.HasPrefix(program, ".") {
		program = filepath.Join(dir, program)
	}
	run := exec.CommandContext(t.Context(), program, script...)
	run.Dir = dir
	run.Env = append(os.Environ(), env...)
	text, err = run.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "ok ") {
			t.Log(strings.TrimRight(line, "\n"))
		}
	}
	return text, err
}

// copyInto copies a folder of this package.
func copyInto(t *testing.T, dir, from string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
