package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/process/telemetry"
)

// TestTelemetryHoldsNoPersonalData sends marked values in every part of valid and invalid
// requests, with a working and a failing store, and searches logs (from debug upwards),
// metrics and spans for them.
func TestTelemetryHoldsNoPersonalData(t *testing.T) {
	m, emulator := emulated(t, uuid.New)
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tel, err := telemetry.Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t: t, logs: &syncBuffer{}}
	server, err := newServer(m, &httpapi.Options{
		Logger: slog.New(slog.NewJSONHandler(a.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Meters: tel.Meters, Tracers: tracers, Audit: true, Auth: apiKeys(t), RateLimit: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.serve(server)

	const mark = "Qwyjibo"
	do := func(method, path, body string, headers ...string) answer {
		return a.do(method, path, body, append(headers, "x-api-key", "wkey")...)
	}
	body := fmt.Sprintf(`{"firstName":"%[1]s","lastName":"%[1]s","email":"%[1]s@%[1]s.example","description":"%[1]s","companyName":"%[1]s"}`, mark)
	path := do("POST", "/api/contacts", body, "Idempotency-Key", mark).header.Get("Location")
	drive := func() {
		do("POST", "/api/contacts", body, "Idempotency-Key", mark)
		do("POST", "/api/contacts", strings.Replace(body, "description", mark, 1), "Idempotency-Key", mark)
		do("POST", "/api/contacts", body+mark)
		do("POST", "/api/contacts", `{"firstName":"`+mark+`\u0000","email":"`+mark+`"}`)
		do("POST", path+"/update-name", `{"firstName":"`+mark+`","lastName":"`+mark+mark+`"}`)
		do("PATCH", path, `{"company":{"street":"`+mark+`","`+mark+`":1}}`, "Content-Type", "application/merge-patch+json")
		do("PATCH", path, `{"company":{"street":"`+mark+`"}}`, "Content-Type", "application/merge-patch+json")
		do("GET", path, "", "If-None-Match", mark, "User-Agent", mark, "x-ms-client-request-id", mark, "Referer", mark)
		do("GET", path, "", "x-ms-session-token", mark, "tracestate", "a="+mark, "baggage", "name="+mark)
		do("GET", "/api/contacts?pageSize="+mark+"&"+mark+"=1", "")
		do("GET", "/api/contacts/"+mark, "")
		do("GET", "/"+mark, "")
		do(mark, path, "")
		a.do("GET", path, "", "x-api-key", mark, "Authorization", "Bearer "+mark)
	}
	drive()
	for _, f := range []cosmosemu.Fault{cosmosemu.Failed(), cosmosemu.Unavailable(), {Status: http.StatusTeapot}, {Status: http.StatusBadRequest, Message: "what you sent"}} {
		remove := emulator.Control(cosmosemu.OpAny, cosmosemu.Always(f))
		drive()
		remove()
	}
	do("DELETE", path, "")

	metrics := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var traces strings.Builder
	for _, span := range spans.GetSpans() {
		fmt.Fprintf(&traces, "%s %v %v %v %v %v\n", span.Name, span.Attributes, span.Events, span.Links, span.Status, span.SpanContext.TraceState())
	}
	for where, text := range map[string]string{"logs": a.logs.String(), "metrics": metrics.Body.String(), "spans": traces.String()} {
		if text == "" {
			t.Errorf("there are no %s", where)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(strings.ToLower(line), strings.ToLower(mark)) {
				t.Errorf("personal data in the %s: %s", where, line)
			}
		}
	}
	if !strings.Contains(metrics.Body.String(), "http_server_request_duration_seconds") {
		t.Error("requests are not measured")
	}
}
