package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"feedbox/tests/testenv"
)

// victim is a module with a test that passes, fails, panics or hangs as Behaviour says.
var victim = map[string]string{
	"go.mod":       "module victim\n\ngo 1.26\n",
	"behaviour.go": "package victim\n\n// Behaviour is changed by the mutants.\nconst Behaviour = \"right\"\n",
	"behaviour_test.go": `package victim

import (
	"os"
	"testing"
)

var counter int

func TestBehaviour(t *testing.T) {
	switch Behaviour {
	case "right":
	case "wrong":
		t.Error("wrong")
	case "nil":
		var none *int
		t.Error("about to fail as well")
		counter = *none
	case "stuck":
		<-make(chan int)
	case "exit 1":
		os.Exit(1)
	case "exit 3":
		os.Exit(3)
	case "sometimes": // fails the first time
		if os.Mkdir(os.Getenv("VICTIM_MEMORY"), 0o700) == nil {
			t.Error("once")
		}
	}
}

func TestBehaviourOfAnother(t *testing.T) {
	if Behaviour == "other" {
		t.Error("wrong")
	}
}

func TestMain(m *testing.M) {
	status := m.Run()
	if Behaviour == "main" {
		status = 1
	}
	os.Exit(status)
}
`,
}

func TestOnlyAnAssertionThatFailsTwiceKills(t *testing.T) {
	tree := t.TempDir()
	for name, text := range victim {
		write(t, filepath.Join(tree, name), text)
	}
	t.Setenv("VICTIM_MEMORY", filepath.Join(t.TempDir(), "memory"))
	behaviours := []struct {
		behaviour string
		want      verdict
	}{
		{`"wrong"`, killed},
		{`"harmless"`, survived},
		{`"sometimes"`, unsteady},
		{`"stuck"`, hung},
		{`"exit 1"`, panicked},
		{`"main"`, unnamed},
		{`"other"`, survived}, // only a test with a longer name fails
		{`"nil"`, panicked},
		{`"exit 3"`, panicked},
		{`undefined`, doesNotCompile},
	}
	for _, c := range behaviours[:testenv.Sample(t, 6, len(behaviours))] {
		behaviour, want := c.behaviour, c.want
		m := mutantOf(t, behaviour, "kills: . TestBehaviour")
		r := attempt(t.Context(), tree, m, options{timeout: 5 * time.Second})
		if r.verdict != want {
			t.Errorf("%s: %s, want %s\n%s", behaviour, r.verdict, want, r.detail)
		}
		if by := r.by(); by != map[bool]string{true: "TestBehaviour"}[want == killed] {
			t.Errorf("%s: killed by %q", behaviour, by)
		}
	}
	// The second kills line runs, because the tests of the first pass.
	m := mutantOf(t, `"other"`, "kills: . TestBehaviour\nkills: . TestBehaviourOfAnother")
	if r := attempt(t.Context(), tree, m, options{timeout: time.Minute}); r.verdict != killed || r.by() != "TestBehaviourOfAnother" {
		t.Errorf("killed by the second line: %s by %q\n%s", r.verdict, r.by(), r.detail)
	}
}

// mutantOf returns the mutant of victim that sets Behaviour to an expression.
func mutantOf(t *testing.T, behaviour, kills string) *mutant {
	t.Helper()
	m, err := parseMutant("victim/x", fmt.Sprintf(`removes: the right behaviour
%s

--- behaviour.go
-const Behaviour = "right"
+const Behaviour = %s
`, kills, behaviour))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// These cases would need the race detector or a long time with a real go test.
func TestVerdictOfEvents(t *testing.T) {
	const (
		ran   = `{"Action":"run","Test":"TestA"}` + "\n"
		fails = `{"Action":"output","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}` + "\n"
		end   = `{"Action":"output","Output":"FAIL\n"}`
	)
	for _, c := range []struct {
		name, events string
		want         verdict
	}{
		{"an assertion", ran + fails + end, killed},
		{"a log line that mentions a panic", ran + `{"Action":"output","Test":"TestA","Output":"    a_test.go:1: panic: no\n"}` + "\n" + fails + end, killed},
		{"the event of test2json for an interrupted test", ran + `{"Action":"fail","Test":"TestA"}` + "\n" + end, unnamed},
		{"a subtest without its parent", ran + `{"Action":"output","Test":"TestA/sub","Output":"    --- FAIL: TestA/sub (0.00s)\n"}` + "\n" + end, unnamed},
		{"a data race", ran + `{"Action":"output","Test":"TestA","Output":"WARNING: DATA RACE\n"}` + "\n" + fails + end, raced},
		{"a timeout", ran + `{"Action":"output","Test":"TestA","Output":"panic: test timed out after 1s\n"}` + "\n" + fails, hung},
		{"a panic or a signal", ran + fails, panicked},
		{"a failed build", `{"ImportPath":"a","Action":"build-fail"}`, doesNotCompile},
	} {
		run := readEvents([]byte(c.events + "\n"))
		run.failed = true
		if got := run.verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
