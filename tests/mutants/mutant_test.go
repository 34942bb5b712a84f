package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const patch = `removes: one thing | another
kills: ./application/relay/ TestA|TestB
kills: -tags faults ./tests/e2e TestC

--- a/application/relay/park.go
+++ b/application/relay/park.go
@@ -1 +1 @@
-a
+removes: no header any more
`

func TestPatchesAreRead(t *testing.T) {
	m, err := parseMutant("relay/x", []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	last := m.kills[1]
	if m.removes != "one thing | another" || len(m.files) != 1 || m.files[0] != "application/relay/park.go" ||
		m.kills[0].pkg != "./application/relay" || last.pkg != "./tests/e2e" || last.tests != "TestC" || strings.Join(last.flags, " ") != "-tags faults" {
		t.Errorf("%+v", m)
	}
	for _, bad := range []string{"", "removes: x\n+++ b/a.go\n", "removes: x\nkills: ./a\n+++ b/a.go\n"} {
		if _, err := parseMutant("x", []byte(bad)); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

// A run of some mutants keeps the rows of the others.
func TestRowsStay(t *testing.T) {
	m, err := parseMutant("relay/x", []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "README.md")
	first := report([]result{{mutant: m, verdict: killed, tests: []string{"TestA", "TestB"}}}, []requirement{{"mistake", []string{"relay/x"}}})
	if err := os.WriteFile(page, []byte(first), 0o600); err != nil {
		t.Fatal(err)
	}
	again := report(merge(nil, []*mutant{m}, readPage(page)), []requirement{{"mistake", []string{"relay/x"}}})
	if again != first || !strings.Contains(again, "TestA, TestB | 0.0 |") {
		t.Errorf("first:\n%s\nagain:\n%s", first, again)
	}
	if none := report(merge(nil, []*mutant{m}, nil), nil); !strings.Contains(none, "| not run |") {
		t.Errorf("without a page:\n%s", none)
	}
}

// Every patch in the tree has its header, and what is required is there.
func TestTheTreeIsComplete(t *testing.T) {
	all, err := readMutants(".")
	if err != nil {
		t.Fatal(err)
	}
	required, err := readRequired("required.txt", all)
	if err != nil || len(required) < 24 || len(all) < 150 {
		t.Errorf("%d mutants, %d required: %v", len(all), len(required), err)
	}
}

// Every patch fits the code as it is: one that does not tests nothing.
func TestEveryPatchApplies(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: no patch was tried: git, which applies the patches, is not installed")
	}
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readMutants(filepath.Join(tree, "tests", "mutants"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.overlay(t.Context(), tree, t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
