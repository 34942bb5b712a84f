package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/result"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"an unknown stage":  {"-only", "api,moon"},
		"an unknown flag":   {"-fast"},
		"no runs":           {"-runs", "0"},
		"a stray word":      {"api"},
		"one file":          {"compare", "a.json"},
		"stage without one": {"stage"},
	} {
		var out, progress bytes.Buffer
		if status := run(t.Context(), args, &out, &progress); status != exitUsage || progress.Len() == 0 || out.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q", name, status, &progress, &out)
		}
	}
	var out, progress bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &out, &progress); status != exitOK || !strings.Contains(progress.String(), "-only") {
		t.Errorf("-h: status %d, %s", status, &progress)
	}
}

func TestCompareExitsWithItsVerdict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, value float64) string {
		f := &result.File{Format: result.Format}
		f.Add("api", result.Run{Figures: []measure.Figure{measure.Rate("updates", value, "op/s").Over(100)}})
		path := filepath.Join(dir, name)
		if err := f.Write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fast, slow := write("fast.json", 100), write("slow.json", 50)
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"compare", fast, slow}, exitRegressed, "REGRESSED"},
		{[]string{"compare", slow, fast}, exitOK, "improved"},
		{[]string{"compare", fast, fast}, exitOK, "Steady within noise: 1."},
		{[]string{"compare", fast, filepath.Join(dir, "none.json")}, exitFailed, ""},
	} {
		var out, progress bytes.Buffer
		if status := run(t.Context(), c.args, &out, &progress); status != c.status || !strings.Contains(out.String(), c.text) {
			t.Errorf("%v: status %d, %s%s", c.args, status, &out, &progress)
		}
	}
}

// TestEventsOfAStage runs a test stage in this process and reads its events.
func TestEventsOfAStage(t *testing.T) {
	saved := allStages
	t.Cleanup(func() { allStages = saved })
	allStages = []stage{{name: "toy", measure: func(_ context.Context, r *measure.Run) error {
		r.Step("playing, quick %t", r.Quick)
		r.Add(measure.Rate("plays", 7, "1/s"))
		return errors.New("the toy broke")
	}}}
	prefix := filepath.Join(t.TempDir(), "toy")
	var out, progress bytes.Buffer
	if status := run(t.Context(), []string{"stage", "-quick", "-profile", prefix, "toy"}, &out, &progress); status != exitOK {
		t.Fatalf("status %d, %s", status, &progress)
	}
	var steps, failures []string
	figures := map[string]measure.Figure{}
	err := readEvents(bytes.NewReader(out.Bytes()), func(e event) {
		switch {
		case e.Figure != nil:
			figures[e.Figure.Name] = *e.Figure
		case e.Failure != "":
			failures = append(failures, e.Failure)
		default:
			steps = append(steps, e.Step)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || steps[0] != "playing, quick true" || len(failures) != 1 || failures[0] != "the toy broke" {
		t.Errorf("steps %q, failures %q", steps, failures)
	}
	if f := figures["plays"]; f.Value != 7 || f.Stage != "toy" {
		t.Errorf("figures %+v", figures)
	}
	if f := figures["memory, heap in the end"]; f.Value <= 0 {
		t.Errorf("no memory: %+v", figures)
	}
	for _, name := range []string{".cpu.pprof", ".heap.pprof"} {
		if found, _ := filepath.Glob(prefix + name); len(found) != 1 {
			t.Errorf("no profile %s", name)
		}
	}
	half := out.Bytes()[:out.Len()/2]
	if err := readEvents(bytes.NewReader(half), func(event) {}); err == nil {
		t.Error("a stage that stops talking was taken for done")
	}
}

func TestScreenOffATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := newScreen(&out, 2)
	s.begin("api", 1, 3)
	s.step("too soon to tell")
	s.end(result.Run{Seconds: 12, Figures: []measure.Figure{measure.Rate("a", 1, "").Wants(measure.AtLeast(2)), measure.Rate("b", 1, "")}})
	want := "   0s [1/2] api, run 1 of 3\n   0s [1/2] api, run 1 of 3: 12 s, 2 figures, 0 of 1 goals met\n"
	if out.String() != want {
		t.Errorf("%q", &out)
	}
}
