package wiring

import (
	"testing"

	"go.uber.org/fx/fxtest"

	"feedbox/infrastructure/telemetry"
)

// Parts of one process share telemetry that is given, and leave it running: its owner
// shuts it down.
func TestPartsShareTelemetry(t *testing.T) {
	shared, err := telemetry.Start(t.Context(), "feedbox-dev", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"feedbox-api", "feedbox-relay"} {
		lc := fxtest.NewLifecycle(t)
		got, err := Surroundings{Telemetry: shared}.telemetry(lc, service, "")
		if err != nil || got != shared {
			t.Errorf("%s got %p, %v, want the shared %p", service, got, err, shared)
		}
		lc.RequireStart().RequireStop()
	}
	if err := shared.Shutdown(t.Context()); err != nil {
		t.Errorf("the parts have shut it down: %v", err)
	}
	lc := fxtest.NewLifecycle(t)
	own, err := Surroundings{}.telemetry(lc, "feedbox-api", "")
	if err != nil || own == nil || own == shared {
		t.Errorf("a part on its own got %p, %v", own, err)
	}
	lc.RequireStart().RequireStop()
}
