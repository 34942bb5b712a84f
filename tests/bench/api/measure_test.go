package api_test

import (
	"testing"

	"go.uber.org/goleak"

	"feedbox/tests/bench/api"
	"feedbox/tests/bench/measure"
)

type figures map[string]measure.Figure

func (figures) Step(string)               {}
func (f figures) Figure(m measure.Figure) { f[m.Name] = m }

// TestMeasure runs a quick measurement. It checks that both sides work and that every
// answered update is stored, but not the figures.
func TestMeasure(t *testing.T) {
	defer goleak.VerifyNone(t)
	got := figures{}
	run := measure.NewRun("api", got)
	run.Quick = true
	if err := api.Measure(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if err := run.Err(); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"disk", "memory"} {
		if f := got["updates, "+at]; f.Value <= 0 || f.Floor <= 0 || f.CPU <= 0 || f.FloorCPU <= 0 {
			t.Errorf("%s: nothing was measured: %+v", at, f)
		}
		if f := got["update p99, "+at]; f.Value <= 0 || f.Floor <= 0 {
			t.Errorf("%s: no latency: %+v", at, f)
		}
	}
}
