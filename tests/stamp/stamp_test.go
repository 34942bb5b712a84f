package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository writes a module with a package under test, one that it imports, and a fixture.
func repository(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.26\n", "go.sum": "", "Makefile": "all:\n",
		"a/a.go": "package a\n\nimport _ \"example.org/m/b\"\n", "a/a_test.go": "package a\n",
		"b/b.go": "package b\n", "b/b_test.go": "package b\n", "c/c.go": "package c\n",
		"fixtures/one.txt": "1\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	t.Setenv("CI", "")
	t.Setenv("STAMPS", "")
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ran reports whether the check ran its command, which passes.
func ran(t *testing.T, root string, c check) bool {
	t.Helper()
	var out strings.Builder
	if err := c.run(root, "browser", []string{"echo", "the command ran"}, &out); err != nil {
		t.Fatal(err)
	}
	again := strings.Contains(out.String(), "the command ran")
	if !again && !strings.Contains(out.String(), "NOT RUN AGAIN: it passed on these inputs on ") {
		t.Errorf("a check that did not run said %q", &out)
	}
	return again
}

var toy = check{packages: []string{"./a"}, files: []string{"fixtures"}, tools: []string{"go version"}}

func TestCheckRunsAgainWhenAnInputChanges(t *testing.T) {
	root := repository(t)
	if !ran(t, root, toy) || ran(t, root, toy) {
		t.Fatal("a check must run once, and not again on the same inputs")
	}
	for _, name := range []string{"a/a.go", "a/a_test.go", "b/b.go", "fixtures/one.txt", "fixtures/two.txt", "go.sum", "Makefile"} {
		path := filepath.Join(root, name)
		text, _ := os.ReadFile(path) // two.txt is new
		write(t, path, string(text)+"\n")
		if !ran(t, root, toy) {
			t.Errorf("the check did not run after a change of %s", name)
		}
	}
	for _, name := range []string{"b/b_test.go", "c/c.go", "README.md"} {
		write(t, filepath.Join(root, name), "package b\n\n")
	}
	if ran(t, root, toy) {
		t.Error("the check ran again after a change of files on which it does not depend")
	}
	t.Setenv("FEEDBOX_TEST_X", "y")
	if !ran(t, root, toy) {
		t.Error("the check did not run with another variable")
	}
	var out strings.Builder
	if err := toy.run(root, "browser", []string{"echo", "another command"}, &out); err != nil || !strings.Contains(out.String(), "another command\n") {
		t.Errorf("another command did not run: %v, %s", err, &out)
	}
}

func TestStampIsNeitherReadNorWrittenWhereItMayNot(t *testing.T) {
	root := repository(t)
	t.Setenv("CI", "true")
	ran(t, root, toy)
	if !ran(t, root, toy) {
		t.Error("CI wrote a stamp")
	}
	t.Setenv("CI", "")
	ran(t, root, toy)
	t.Setenv("CI", "true")
	if ran(t, root, toy) {
		t.Error("CI ignored a stamp that matches")
	}
	t.Setenv("STAMPS", "ignore")
	if !ran(t, root, toy) {
		t.Error("STAMPS=ignore did not run the check")
	}
}

func TestNoStampWithoutAWholePass(t *testing.T) {
	root := repository(t)
	var out strings.Builder
	if err := toy.run(root, "browser", []string{"false"}, &out); err == nil || !ran(t, root, toy) {
		t.Errorf("a check that failed (%v) was not run again", err)
	}
	for why, c := range map[string]check{
		"a missing tool": {tools: []string{"no-such-program --version"}},
		"a missing file": {files: []string{"no-such-file"}},
	} {
		ran(t, root, c)
		if !ran(t, root, c) {
			t.Errorf("%s: the check, which skips a part then, got a stamp", why)
		}
	}
	c := check{files: []string{"fixtures"}}
	change := []string{"cp", "go.mod", "fixtures/changed.txt"}
	for range 2 {
		_ = os.Remove(filepath.Join(root, "fixtures/changed.txt")) // not there the first time
		out.Reset()
		if err := c.run(root, "browser", change, &out); err != nil || strings.Contains(out.String(), "NOT RUN AGAIN") {
			t.Errorf("a check whose inputs changed during the run got a stamp: %v, %s", err, &out)
		}
	}
}

func TestEveryCheckHasInputs(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		for _, f := range slices.Concat(checks[name].files, checks[name].packages) {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(f, "..."))); err != nil && !strings.HasPrefix(f, "../") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if in, err := checks["conformance-servicebus"].collect(root, nil); err != nil || len(in.lines) < 100 {
		t.Errorf("%v, %d inputs", err, len(in.lines))
	}
	if _, err := read("stamps.txt"); err != nil {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	root := repository(t)
	for _, args := range [][]string{{}, {"run"}, {"run", "moon", "--", "true"}, {"run", "lint"}, {"run", "lint", "true"}, {"inputs", "lint", "x"}} {
		if err := run(args, root, &strings.Builder{}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	write(t, filepath.Join(root, file), "browser 12\n")
	if err := toy.run(root, "browser", []string{"true"}, &strings.Builder{}); err == nil {
		t.Error("a line that is not a stamp is accepted")
	}
}
