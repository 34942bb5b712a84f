package servicebus_test

import (
	"testing"

	"go.uber.org/goleak"

	"feedbox/tests/bench/measure"
	"feedbox/tests/bench/servicebus"
)

type figures map[string]measure.Figure

func (figures) Step(string)               {}
func (f figures) Figure(m measure.Figure) { f[m.Name] = m }

// TestMeasure runs a quick measurement. It checks that every side works and loses no message,
// but not the figures.
func TestMeasure(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, stage := range map[string]measure.Stage{"measure": servicebus.Measure, "growth": servicebus.Growth} {
		got := figures{}
		run := measure.NewRun("servicebus", got)
		run.Quick = true
		if err := stage(t.Context(), run); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := run.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for name, f := range got {
			// On a slow disk most turns may end before a batch is stored. On a busy machine the idle process may
			// not run at all.
			if f.Value <= 0 && f.CPU <= 0 && name != "idle wake-ups" {
				t.Errorf("%s was not measured: %+v", name, f)
			}
		}
	}
}
