package wiring

import (
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx/fxtest"

	"feedbox/infrastructure/process/telemetry"
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
		got, err := Params{Telemetry: shared}.telemetry(lc, service, "")
		if err != nil || got != shared {
			t.Errorf("%s got %p, %v, want the shared %p", service, got, err, shared)
		}
		lc.RequireStart().RequireStop()
	}
	if err := shared.Shutdown(t.Context()); err != nil {
		t.Errorf("the parts have shut it down: %v", err)
	}
	lc := fxtest.NewLifecycle(t)
	own, err := Params{}.telemetry(lc, "feedbox-api", "")
	if err != nil || own == nil || own == shared {
		t.Errorf("a part on its own got %p, %v", own, err)
	}
	lc.RequireStart().RequireStop()
}

// The text is the propagator's, for spans that are sampled, that are not, and none.
func TestTraceparentIsThePropagators(t *testing.T) {
	t.Parallel()
	one := trace.SpanContextConfig{TraceID: trace.TraceID{0x0a, 15: 0xf7}, SpanID: trace.SpanID{0xb7, 7: 1}}
	sampled, strange := one, one
	sampled.TraceFlags = trace.FlagsSampled
	strange.TraceFlags = 0xff
	for _, config := range []trace.SpanContextConfig{{}, one, sampled, strange, {TraceID: one.TraceID}} {
		ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(config))
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		if got, want := traceparent(ctx), carrier.Get("traceparent"); got != want {
			t.Errorf("span %+v: traceparent %q, want %q", config, got, want)
		}
	}
}
