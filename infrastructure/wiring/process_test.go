package wiring

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx/fxtest"

	"feedbox/infrastructure/process/telemetry"
)

// API and relay use shared telemetry and do not shut it down, because its owner does.
func TestSharedTelemetryIsNotShutDown(t *testing.T) {
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
		t.Errorf("the shared telemetry was shut down: %v", err)
	}
	lc := fxtest.NewLifecycle(t)
	own, err := Params{}.telemetry(lc, "feedbox-api", "")
	if err != nil || own == nil || own == shared {
		t.Errorf("without shared telemetry: %p, %v", own, err)
	}
	lc.RequireStart().RequireStop()
}

// The format equals that of the propagator, for sampled, unsampled and invalid spans.
func TestTraceparentEqualsThePropagator(t *testing.T) {
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

// CollectLess applies its settings except where the operator has set a variable.
func TestCollectLessKeepsTheOperatorsSettings(t *testing.T) {
	const percent, limit = 123, 1 << 40
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	for _, c := range []struct {
		environ   []string
		wantGC    int
		wantLimit int64
	}{
		{[]string{"GOGC=50", "GOMEMLIMIT=1GiB"}, percent, limit},
		{[]string{"GOGC=50"}, percent, GarbageLimit},
		{[]string{"GOGC=", "GOMEMLIMIT=1GiB"}, GarbagePercent, limit},
		{nil, GarbagePercent, GarbageLimit},
	} {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
		CollectLess(c.environ)
		if got := debug.SetGCPercent(percent); got != c.wantGC {
			t.Errorf("environment %q: GC percent %d, want %d", c.environ, got, c.wantGC)
		}
		if got := debug.SetMemoryLimit(-1); got != c.wantLimit {
			t.Errorf("environment %q: memory limit %d, want %d", c.environ, got, c.wantLimit)
		}
	}
}

func TestSecondSignalAbandonsTheStop(t *testing.T) {
	kill := killer(t)
	abandoned := make(chan struct{})
	ctx, stop := UntilSignal(t.Context(), func() { close(abandoned) })
	defer stop()
	if ctx.Err() != nil {
		t.Fatal("the context has ended before a signal")
	}
	kill()
	<-ctx.Done()
	select {
	case <-abandoned:
		t.Fatal("abandoned after one signal")
	case <-time.After(50 * time.Millisecond):
	}
	began := time.Now()
	kill()
	<-abandoned
	if took := time.Since(began); took < hurry {
		t.Errorf("abandoned %s after the second signal, want %s", took, hurry)
	}
}

func TestStopInTimeIsNotAbandoned(t *testing.T) {
	kill := killer(t)
	ctx, stop := UntilSignal(t.Context(), func() { t.Error("abandoned although the stop ended in time") })
	kill()
	<-ctx.Done()
	kill()
	stop()
}

// killer returns a function that sends SIGTERM to this process and waits for its delivery.
// A signal that arrives after the test has ended would kill the process.
func killer(t *testing.T) (kill func()) {
	t.Helper()
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGTERM)
	t.Cleanup(func() { signal.Stop(came) })
	return func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-came
	}
}
