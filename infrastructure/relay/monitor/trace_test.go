package monitor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"feedbox/application/relay"
)

// request returns the traceparent of request n, with these flags.
func request(n int, flags string) string {
	return fmt.Sprintf("00-%032x-%016x-%s", n, n, flags)
}

// calls returns a call with one event for each traceparent, two events of each key.
func calls(traceparents ...string) []relay.Group {
	var groups []relay.Group
	for i, text := range traceparents {
		if i%2 == 0 {
			groups = append(groups, relay.Group{Key: fmt.Sprint("k", i)})
		}
		g := &groups[len(groups)-1]
		g.Messages = append(g.Messages, relay.Message{ID: fmt.Sprint("e", i), Key: g.Key, Traceparent: text})
	}
	return groups
}

func TestSendSpanJoinsTheTraceOfASampledRequest(t *testing.T) {
	refused := &relay.PublishError{Keys: []relay.KeyError{{Err: &relay.Error{Class: relay.Outage, Reason: "server_busy"}}}}
	many := make([]string, 300)
	for i := range many {
		many[i] = request(i+1, "01")
	}
	for _, test := range []struct {
		name    string
		calls   []relay.Group
		fails   error
		none    bool // no span
		request int  // whose trace the span joins; 0 = none
		links   int
	}{
		{name: "one event", calls: calls(request(1, "01")), request: 1, links: 1},
		{name: "the first sampled one of three", calls: calls(request(1, "00"), request(2, "03"), request(3, "01")), request: 2, links: 2},
		{name: "two events of one request", calls: calls(request(1, "01"), request(1, "01")), request: 1, links: 1},
		{name: "no request is sampled", calls: calls(request(1, "00"), request(2, "02")), none: true},
		{name: "events without a context are up to the sampler", calls: calls("", "")},
		{name: "malformed contexts count as none", calls: calls("01", "00-zz-01", request(1, "01")[:54]+"g")},
		{name: "the number of links is bounded", calls: calls(many...), request: 1, links: maxLinks},
		{name: "a failure", calls: calls(request(1, "01")), fails: refused, request: 1, links: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
			before := fmt.Sprint(test.calls)
			if err := Traced(accepting{test.fails}, tracers, "servicebus", "contacts").Publish(t.Context(), test.calls); !errors.Is(err, test.fails) {
				t.Errorf("the error became %v", err)
			}
			if fmt.Sprint(test.calls) != before {
				t.Error("the messages were changed")
			}
			written := spans.GetSpans()
			if test.none || len(written) != 1 {
				if !test.none || len(written) != 0 {
					t.Fatalf("%d spans", len(written))
				}
				return
			}
			span := written[0]
			joined := fmt.Sprintf("%032x", test.request) == span.SpanContext.TraceID().String() && fmt.Sprintf("%016x", test.request) == span.Parent.SpanID().String()
			if joined != (test.request != 0) || len(span.Links) != test.links || span.DroppedLinks != 0 {
				t.Errorf("trace %s below %s with %d links", span.SpanContext.TraceID(), span.Parent.SpanID(), len(span.Links))
			}
			attributes := map[string]any{}
			for _, a := range span.Attributes {
				attributes[string(a.Key)] = a.Value.AsInterface()
			}
			messages := 0
			for _, g := range test.calls {
				messages += len(g.Messages)
			}
			want := map[string]any{
				"messaging.system": "servicebus", "messaging.destination.name": "contacts", "messaging.operation.name": "send", "messaging.operation.type": "send",
				"messaging.batch.message_count": int64(messages), "outbox.batch.key_count": int64(len(test.calls)),
			}
			if test.fails != nil {
				want["error.type"], want["outbox.batch.failed_key_count"] = "server_busy", int64(1)
			}
			if d := cmp.Diff(want, attributes); d != "" {
				t.Error(d)
			}
			if span.Name != "send contacts" || span.SpanKind != trace.SpanKindProducer || (span.Status.Code == codes.Error) != (test.fails != nil) {
				t.Errorf("name %q, kind %s, status %v", span.Name, span.SpanKind, span.Status)
			}
		})
	}
}

func TestPublisherIsNotWrappedWithoutTracers(t *testing.T) {
	if next := (accepting{}); Traced(next, nil, "servicebus", "contacts") != relay.Publisher(next) {
		t.Error("a call costs something without tracers")
	}
}

// BenchmarkTracing publishes 100 events of 100 requests per operation, of which none or one is
// sampled, as with a ratio of 1 %. Compare it with the CPU time of the relay in tests/bench.
func BenchmarkTracing(b *testing.B) {
	texts := make([]string, 100)
	for i := range texts {
		texts[i] = request(i+1, "00")
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))
	defer func() { _ = tracers.Shutdown(context.WithoutCancel(b.Context())) }()
	for name, with := range map[string]trace.TracerProvider{"off": nil, "unsampled": tracers, "one of 100 sampled": tracers} {
		if texts[50] = request(51, "00"); name == "one of 100 sampled" {
			texts[50] = request(51, "01")
		}
		groups, p := calls(texts...), Traced(accepting{}, with, "servicebus", "contacts")
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Publish(b.Context(), groups)
			}
		})
	}
}

// discard is an exporter without a destination.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
