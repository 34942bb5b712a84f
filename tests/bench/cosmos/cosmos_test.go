package cosmos_test

import (
	"testing"

	"feedbox/tests/bench/cosmos"
	"feedbox/tests/bench/measure"
)

type figures map[string]measure.Figure

func (figures) Step(string)               {}
func (f figures) Figure(m measure.Figure) { f[m.Name] = m }

// TestMeasure runs a quick measurement. It checks that every operation works on both
// servers, but not the figures.
func TestMeasure(t *testing.T) {
	got := figures{}
	run := measure.NewRun("cosmos", got)
	run.Quick = true
	if err := cosmos.Measure(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := run.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"create", "read", "upsert", "batch of 5", "feed page of 100"} {
		if f := got[name]; f.Value <= 0 || f.Floor <= 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := got["idle, resident"]; f.Value <= 0 {
		t.Errorf("no memory: %+v", f)
	}
}
