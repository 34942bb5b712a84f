package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const example = `removes: one thing | another
kills: ./application/relay/ TestA|TestB
kills: -tags faults ./tests/e2e TestC

--- application/relay/park.go
-a
+removes: this line belongs to the change
@@
 b
+c

--- application/relay/gate.go
-d
`

func TestMutantIsParsed(t *testing.T) {
	m, err := parseMutant("relay/x", example)
	if err != nil {
		t.Fatal(err)
	}
	last := m.kills[1]
	if m.removes != "one thing | another" || m.kills[0].pkg != "./application/relay" ||
		last.pkg != "./tests/e2e" || last.tests != "TestC" || strings.Join(last.flags, " ") != "-tags faults" {
		t.Errorf("%+v", m)
	}
	if len(m.changes) != 2 || len(m.changes[0].hunks) != 2 || m.changes[1].file != "application/relay/gate.go" {
		t.Errorf("%+v", m.changes)
	}
}

func TestMalformedMutantIsRejected(t *testing.T) {
	const header = "removes: x\nkills: ./a TestA\n"
	for _, bad := range []string{
		"",
		header,
		"removes: x\n--- a.go\n-a\n",
		"removes: x\nkills: ./a\n--- a.go\n-a\n",
		header + "because\n--- a.go\n-a\n",
		header + "--- a.go\n",
		header + "--- a.go\n a\n",
		header + "--- a.go\n-a\n@@\n a\n",
		header + "--- a.go\n-a\n\tb\n",
	} {
		if _, err := parseMutant("x", bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

func TestReportEscapesCells(t *testing.T) {
	m, err := parseMutant("relay/x", example)
	if err != nil {
		t.Fatal(err)
	}
	got := report([]result{{mutant: m, verdict: killed, tests: []string{"TestA", "TestB"}}, {mutant: m, verdict: survived}})
	for _, want := range []string{
		"**1 of 2 mutants killed.**\n\n## relay\n",
		`| x | one thing \| another | application/relay, tests/e2e: TestA, TestB | 0.0 |`,
		`| x | one thing \| another | SURVIVED | 0.0 |`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestEveryRequiredMutantExists(t *testing.T) {
	all, err := readMutants(".")
	if err != nil {
		t.Fatal(err)
	}
	if mistakes, err := checkRequired("required.txt", all); err != nil || mistakes < 24 || len(all) < 150 {
		t.Errorf("%d mutants, %d required mistakes: %v", len(all), mistakes, err)
	}
}

// A mutant that does not apply tests nothing.
func TestEveryMutantApplies(t *testing.T) {
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := readMutants(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.texts(tree); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// A full run fails as well if a named test does not exist, but only after hours.
func TestEveryNamedTestExists(t *testing.T) {
	all, err := readMutants(".")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{} // of tests, by package
	for _, m := range all {
		for _, k := range m.kills {
			if _, ok := sources[k.pkg]; !ok {
				sources[k.pkg] = testSources(t, filepath.Join("../..", k.pkg))
			}
			for pattern := range strings.SplitSeq(k.tests, "|") {
				name, _, _ := strings.Cut(pattern, "/")
				if !strings.Contains(sources[k.pkg], "\nfunc "+name+"(") {
					t.Errorf("%s: %s has no test %s", m.name, k.pkg, name)
				}
			}
		}
	}
}

func testSources(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
