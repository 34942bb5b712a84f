package api_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"feedbox/tests/bench/api"
)

// TestMeasure runs a short measurement: it checks that both sides work and
// that every answered update is stored. It judges no figures.
func TestMeasure(t *testing.T) {
	defer goleak.VerifyNone(t)
	report, err := api.Measure(t.Context(), api.Config{Contacts: 16, Clients: 4, Turns: 2, Turn: 100 * time.Millisecond, Warmup: 50 * time.Millisecond}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.API.Updates == 0 || report.Bare.Updates == 0 {
		t.Errorf("nothing was measured: %+v", report)
	}
	t.Logf("\n%v", report)
}
