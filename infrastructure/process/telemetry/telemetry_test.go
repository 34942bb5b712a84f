package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"feedbox/infrastructure/process/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetricsCanBeScraped(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(t, tel)
	counter, err := tel.Meters.Meter("test").Int64Counter("feedbox.things")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	answer := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"feedbox_things_total", " 3\n", "go_goroutines", `service_name="feedbox-test"`} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%q is missing from the metrics:\n%s", want, answer.Body.String())
		}
	}
}

// TestWithoutExporterSpansHaveIDs: events and logs carry trace ids even where
// nobody collects traces, and the caller's sampling decision is kept.
func TestWithoutExporterSpansHaveIDs(t *testing.T) {
	tel, err := telemetry.Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(t, tel)
	ctx, span := tel.Tracers.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	if !span.SpanContext().IsValid() || span.IsRecording() {
		t.Errorf("span valid %v, recording %v; want true, false", span.SpanContext().IsValid(), span.IsRecording())
	}

	var out bytes.Buffer
	logger, err := telemetry.NewLogger(&out, nil)
	if err != nil {
		t.Fatal(err)
	}
	logger.With("a", 1).InfoContext(ctx, "hello")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["trace_id"] != span.SpanContext().TraceID().String() || line["span_id"] != span.SpanContext().SpanID().String() {
		t.Errorf("the line has no span ids: %v", line)
	}
}

// TestExportOverOTLP sends metrics and traces to a collector and expects both
// to have arrived when Shutdown returns.
func TestExportOverOTLP(t *testing.T) {
	var mu sync.Mutex // guards the counts
	counts := map[string]int{}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		counts[r.URL.Path]++
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tel, err := telemetry.Start(t.Context(), "feedbox-test", &telemetry.Options{LookupEnv: func(name string) (string, bool) {
		return collector.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT"
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.Tracers.Tracer("test").Start(t.Context(), "work", trace.WithSpanKind(trace.SpanKindServer))
	span.End()
	shutdown(t, tel)
	http.DefaultClient.CloseIdleConnections()
	mu.Lock()
	defer mu.Unlock()
	if counts["/v1/traces"] == 0 || counts["/v1/metrics"] == 0 {
		t.Errorf("the collector received %v", counts)
	}
}

// The specification of OpenTelemetry ignores the case of a boolean.
func TestDisabledSDKExportsNothing(t *testing.T) {
	for value, exports := range map[string]bool{"true": false, "True": false, "TRUE": false, "": true, "false": true, "1": true} {
		tel, err := telemetry.Start(t.Context(), "feedbox-test", &telemetry.Options{LookupEnv: func(name string) (string, bool) {
			return map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": value}[name], true
		}})
		if err != nil {
			t.Fatal(err)
		}
		if got := tel.Exported() != nil; got != exports {
			t.Errorf("OTEL_SDK_DISABLED=%s: exports %t", value, got)
		}
		shutdown(t, tel)
	}
}

func TestLevelCanChange(t *testing.T) {
	var out bytes.Buffer
	var level slog.LevelVar
	logger, err := telemetry.NewLogger(&out, &telemetry.LogOptions{Level: "error", Format: "text", Variable: &level})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("first")
	level.Set(slog.LevelInfo)
	logger.Info("second")
	if strings.Contains(out.String(), "first") || !strings.Contains(out.String(), "second") {
		t.Errorf("got %q", out.String())
	}
	if strings.Contains(out.String(), "\x1b[") {
		t.Errorf("escape codes in text that no terminal shows: %q", out.String())
	}
}

func TestInvalidLogOptionsAreErrors(t *testing.T) {
	for _, o := range []telemetry.LogOptions{{Level: "loud"}, {Format: "xml"}} {
		if _, err := telemetry.NewLogger(io.Discard, &o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func shutdown(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	if err := tel.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestDurationsAreText(t *testing.T) {
	var out bytes.Buffer
	log, err := telemetry.NewLogger(&out, &telemetry.LogOptions{Format: "json"})
	if err != nil {
		t.Fatal(err)
	}
	log.With("since", time.Minute).Info("x", "pause", 1500*time.Millisecond, "in", slog.GroupValue(slog.Duration("age", time.Second)))
	for _, want := range []string{`"since":"1m0s"`, `"pause":"1.5s"`, `"age":"1s"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s lacks %s", out.String(), want)
		}
	}
}
