package telemetry

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// TestSpansOfTheSDK reads an item that is not there through the real SDK and
// expects its spans below ours.
func TestSpansOfTheSDK(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	emulator := cosmosemu.StartT(t)
	t.Cleanup(emulator.HTTPClient().CloseIdleConnections)
	if err := emulator.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/id"}}); err != nil {
		t.Fatal(err)
	}
	key, err := azcosmos.NewKeyCredential(emulator.Key())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(emulator.Endpoint(), key, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: emulator.HTTPClient(), TracingProvider: bridge(tracers)},
	})
	if err != nil {
		t.Fatal(err)
	}
	container, err := client.NewContainer("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	ctx, ours := tracers.Tracer("test").Start(t.Context(), "ours")
	if _, err := container.ReadItem(ctx, azcosmos.NewPartitionKeyString("x"), "x", nil); err == nil {
		t.Fatal("the item was found")
	}
	ours.End()
	found := false
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID() != ours.SpanContext().TraceID() {
			continue // the SDK's reads of the account
		}
		if span.Parent.SpanID() == ours.SpanContext().SpanID() {
			found = true
			if span.SpanKind != trace.SpanKindClient || span.Status.Code != codes.Error || len(span.Attributes) == 0 {
				t.Errorf("span %s: kind %v, status %v, %d attributes", span.Name, span.SpanKind, span.Status, len(span.Attributes))
			}
		}
	}
	if !found {
		t.Error("the SDK wrote no span below ours")
	}
}

func TestNoTracingWithoutExporter(t *testing.T) {
	tel, err := Start(t.Context(), "feedbox-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if tel.AzureTracing().NewTracer("m", "v").Enabled() {
		t.Error("the SDK is traced although nobody would see it")
	}
}

func TestTranslation(t *testing.T) {
	for kind, want := range map[tracing.SpanKind]trace.SpanKind{
		tracing.SpanKindServer: trace.SpanKindServer, tracing.SpanKindClient: trace.SpanKindClient,
		tracing.SpanKindProducer: trace.SpanKindProducer, tracing.SpanKindConsumer: trace.SpanKindConsumer,
		tracing.SpanKindInternal: trace.SpanKindInternal,
	} {
		if got := spanKind(kind); got != want {
			t.Errorf("kind %v becomes %v", kind, got)
		}
	}
	got := attributesOf([]tracing.Attribute{{Key: "s", Value: "x"}, {Key: "b", Value: true}, {Key: "i", Value: 1}, {Key: "l", Value: int64(2)}, {Key: "f", Value: 0.5}, {Key: "o", Value: []int{1}}})
	for i, want := range []string{"x", "true", "1", "2", "0.5", "[1]"} {
		if got[i].Value.String() != want {
			t.Errorf("%s becomes %s", got[i].Key, got[i].Value.String())
		}
	}
}
