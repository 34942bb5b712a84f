package pairs

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"feedbox/tests/testkit"
)

// spans is an OTLP receiver.
type spans struct {
	mu  sync.Mutex // guards all
	all []*otlp.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil && r.URL.Path == "/v1/traces" {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.all = append(s.all, scope.GetSpans()...)
		}
	}
}

// of returns the spans of a trace whose kind is neither that of an SDK's client nor internal.
func (s *spans) of(traceID string) []*otlp.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []*otlp.Span
	for _, span := range s.all {
		if hex.EncodeToString(span.GetTraceId()) == traceID && span.GetKind() != otlp.Span_SPAN_KIND_CLIENT && span.GetKind() != otlp.Span_SPAN_KIND_INTERNAL {
			of = append(of, span)
		}
	}
	return of
}

// ownVirtualHost returns the URL of a virtual host for one test, because feedbox-dev always uses the
// same names and other tests would take its messages.
func ownVirtualHost(t *testing.T) string {
	server := rabbitServer.get(t)
	for _, args := range [][]string{{"add_vhost", "trace"}, {"set_permissions", "-p", "trace", "guest", ".*", ".*", ".*"}} {
		_, err := server.Control(t.Context(), args...)
		must(t, err)
	}
	return strings.TrimSuffix(server.URL, "/") + "/trace"
}

// A request, the send of its event and the call of the handler are one trace, in real processes with
// each broker. A request that is not sampled leaves no spans.
func TestOneTraceFromTheRequestToTheHandler(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		broker        func(t *testing.T) string // its URL; "" = the Service Bus emulator
		send, process string                    // names of spans
	}{
		{func(*testing.T) string { return "" }, "send contacts", "process contacts"},
		{ownVirtualHost, "send contacts", "process contacts.all"},
		{func(t *testing.T) string { return sqsServer.get(t) + "/123456789012/trace.fifo" }, "send trace.fifo", "process trace.fifo"},
	} {
		t.Run(c.process, func(t *testing.T) {
			t.Parallel()
			broker, received := c.broker(t), &spans{}
			receiver := httptest.NewServer(received)
			defer receiver.Close()
			dev, e := testkit.StartDevWith(t, testkit.Build(t), []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
			}, testkit.AnyPorts("--ephemeral", "--broker", broker)...)
			const ignored, followed, caller = "11111111111111111111111111111111", "22222222222222222222222222222222", "3333333333333333"
			for n, traceparent := range []string{"00-" + ignored + "-" + caller + "-00", "00-" + followed + "-" + caller + "-01"} {
				post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.API+"/api/contacts", strings.NewReader(`{"firstName":"A","lastName":"B","companyName":"C"}`))
				must(t, err)
				post.Header.Set("Content-Type", "application/json")
				post.Header.Set("Traceparent", traceparent)
				reply, err := testkit.HTTPClient(t, 1).Do(post)
				must(t, err)
				_ = reply.Body.Close()
				testkit.Eventually(t, time.Minute, "the event", func() bool { return strings.Count(dev.Output(), "\nevent ContactCreatedEvent") > n })
			}
			testkit.Eventually(t, time.Minute, "three spans", func() bool { return len(received.of(followed)) >= 3 })
			byName := map[string]*otlp.Span{}
			for _, span := range received.of(followed) {
				byName[span.GetName()] = span
			}
			request, send, process := byName["POST /api/contacts"], byName[c.send], byName[c.process]
			if len(byName) != 3 || request == nil || send == nil || process == nil {
				t.Fatalf("spans %v", byName)
			}
			describe := func(s *otlp.Span) string {
				links := ""
				for _, l := range s.GetLinks() {
					links += fmt.Sprintf(" link %x", l.GetSpanId())
				}
				return fmt.Sprintf("%s below %x%s", s.GetKind(), s.GetParentSpanId(), links)
			}
			id := hex.EncodeToString(request.GetSpanId())
			for span, want := range map[*otlp.Span]string{
				request: "SPAN_KIND_SERVER below " + caller,
				send:    "SPAN_KIND_PRODUCER below " + id + " link " + id,
				process: "SPAN_KIND_CONSUMER below " + id + " link " + id,
			} {
				if got := describe(span); got != want {
					t.Errorf("span %s: %s, want %s", span.GetName(), got, want)
				}
			}
			if left := received.of(ignored); len(left) > 0 {
				t.Errorf("the request that was not sampled left %v", left)
			}
		})
	}
}
