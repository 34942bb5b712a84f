package telemetry

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// AzureTracing lets the clients of the Azure SDK write their spans (one for
// each operation, one for each HTTP request) to our tracer. Set it as
// TracingProvider of azcore.ClientOptions. Where no exporter is configured it
// is the SDK's own provider, which does nothing and costs nothing.
func (t *Telemetry) AzureTracing() tracing.Provider {
	if !t.exporting {
		return tracing.Provider{}
	}
	return bridge(t.Tracers)
}

// bridge translates azcore's tracing interface to OpenTelemetry's.
func bridge(tracers trace.TracerProvider) tracing.Provider {
	return tracing.NewProvider(func(module, version string) tracing.Tracer {
		tracer := tracers.Tracer(module, trace.WithInstrumentationVersion(version))
		return tracing.NewTracer(func(ctx context.Context, name string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
			ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(spanKind(o.Kind)), trace.WithAttributes(attributesOf(o.Attributes)...))
			return ctx, azureSpan(span)
		}, &tracing.TracerOptions{SpanFromContext: func(ctx context.Context) tracing.Span {
			return azureSpan(trace.SpanFromContext(ctx))
		}})
	}, nil)
}

func azureSpan(span trace.Span) tracing.Span {
	return tracing.NewSpan(tracing.SpanImpl{
		End:           func() { span.End() },
		SetAttributes: func(attributes ...tracing.Attribute) { span.SetAttributes(attributesOf(attributes)...) },
		AddEvent: func(name string, attributes ...tracing.Attribute) {
			span.AddEvent(name, trace.WithAttributes(attributesOf(attributes)...))
		},
		SetStatus: func(status tracing.SpanStatus, description string) { span.SetStatus(statusCode(status), description) },
	})
}

func spanKind(kind tracing.SpanKind) trace.SpanKind {
	switch kind {
	case tracing.SpanKindServer:
		return trace.SpanKindServer
	case tracing.SpanKindClient:
		return trace.SpanKindClient
	case tracing.SpanKindProducer:
		return trace.SpanKindProducer
	case tracing.SpanKindConsumer:
		return trace.SpanKindConsumer
	default:
		return trace.SpanKindInternal
	}
}

func statusCode(status tracing.SpanStatus) codes.Code {
	switch status {
	case tracing.SpanStatusError:
		return codes.Error
	case tracing.SpanStatusOK:
		return codes.Ok
	default:
		return codes.Unset
	}
}

func attributesOf(attributes []tracing.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(attributes))
	for i, a := range attributes {
		switch v := a.Value.(type) {
		case string:
			out[i] = attribute.String(a.Key, v)
		case bool:
			out[i] = attribute.Bool(a.Key, v)
		case int:
			out[i] = attribute.Int(a.Key, v)
		case int64:
			out[i] = attribute.Int64(a.Key, v)
		case float64:
			out[i] = attribute.Float64(a.Key, v)
		default:
			out[i] = attribute.String(a.Key, fmt.Sprint(v))
		}
	}
	return out
}
