package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"feedbox/tests/testkit"
)

const frame = "# Title\n\nbefore\n" + begin + end + "after\n"

// folder writes a document and records, and returns the flags for them.
func folder(t *testing.T, text string, records ...testkit.Result) (flags []string, file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "README.md")
	write(t, file, text)
	for _, r := range records {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, r.Fault+".json"), string(data))
	}
	return []string{"-file", file, "-results", dir}, file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var some = []testkit.Result{
	{Fault: "F10", Name: "paused", Test: "TestPaused", Injections: 1, Of: 20, Events: 12345, DuplicatesSent: 7, DuplicatesSeen: 2, Recovery: 0.5, Note: "told apart.", Commit: "abc1234"},
	{Fault: "F2", Name: "killed | at a place", Test: "TestKilled/sent", Seed: 9, Injections: 50, Of: 50, TakeoverP50: 3.04, TakeoverP99: 3.6, Recovery: 120, Commit: "abc1234"},
	{Fault: "F24", Name: "soak", Test: "TestSoak", Injections: 1000, Of: 1000, Simulated: 166.7, Failed: true, Note: "told apart."},
}

func TestTableContainsRecords(t *testing.T) {
	flags, file := folder(t, frame, some...)
	if err := run(flags, io.Discard); err != nil {
		t.Fatal(err)
	}
	text := read(t, file)
	for _, want := range []string{
		"# Title\n\nbefore\n" + begin + "| Fault |", end + "after\n",
		"| F2 | killed \\| at a place (`TestKilled/sent`) | 50 | 0 | 0 | 0 | 0 | 0 | 3.0 s / 3.6 s | 120 s | 9 | abc1234 |\n| F10 | ",
		"| F10 | paused (`TestPaused`) [1] | 1 of 20 | 12,345 | 7 | 2 | 0 | 0 | - | 500 ms | - | abc1234 |",
		"| F24 **failed** | soak (`TestSoak`); 167 h simulated [1] | 1,000 |",
		"\n[1] told apart.\n\n<!-- generated",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	if err := run(append(flags, "-check"), io.Discard); err != nil {
		t.Errorf("check after writing: %v", err)
	}
	if err := run([]string{"-file", file, "-check"}, io.Discard); err != nil {
		t.Errorf("check without records: %v", err)
	}
}

func TestCheckDetectsEdit(t *testing.T) {
	flags, file := folder(t, frame, some...)
	for _, args := range [][]string{append(flags, "-check"), {"-file", file, "-check"}} {
		if err := run(args, io.Discard); err == nil {
			t.Error("an empty table is accepted")
		}
	}
	if err := run(flags, io.Discard); err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(read(t, file), "12,345", "12,346", 1))
	for _, args := range [][]string{append(flags, "-check"), {"-file", file, "-check"}} {
		if err := run(args, io.Discard); err == nil {
			t.Error("an edited table is accepted")
		}
	}
}

func TestInvalidInputIsRefused(t *testing.T) {
	good, _ := folder(t, frame, some...)
	empty, _ := folder(t, frame)
	unmarked, _ := folder(t, "# Title\n", some...)
	twice, _ := folder(t, frame+frame, some...)
	strange, file := folder(t, frame, some...)
	write(t, filepath.Join(filepath.Dir(file), "x.json"), `{"speed":1}`)
	for name, args := range map[string][]string{
		"nothing": nil, "an argument": append(good, "x"), "no records": empty, "no marks": unmarked, "marks twice": twice, "another file": strange,
		"no document": {"-file", "nowhere", "-check"},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
