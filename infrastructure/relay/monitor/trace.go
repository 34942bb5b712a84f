package monitor

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"feedbox/application/relay"
)

// maxLinks bounds the links of a span. It is the default limit of the OpenTelemetry SDK, which
// drops further links.
const maxLinks = 128

// tracedPublisher writes one span of each call, by the semantic conventions for messaging. The
// span belongs to the trace of the first event of the call whose request was sampled, and links
// to the requests of the others. If no request was sampled, the sampler decides by the first
// request, so that with a parent-based sampler there is no span. The messages keep the trace
// context of their requests, because the conventions forbid to replace a context that a
// producer has given, and because a repeated send must not change a message.
type tracedPublisher struct {
	relay.Publisher
	tracer     trace.Tracer
	name       string
	attributes []attribute.KeyValue
}

// Traced returns a publisher that writes spans of the calls of next, or next itself if tracers is
// nil. system and destination are those of NewMetrics.
func Traced(next relay.Publisher, tracers trace.TracerProvider, system, destination string) relay.Publisher {
	if tracers == nil {
		return next
	}
	return &tracedPublisher{
		Publisher: next, tracer: tracers.Tracer("feedbox/relay"), name: "send " + destination,
		attributes: []attribute.KeyValue{
			attribute.String("messaging.system", system), attribute.String("messaging.destination.name", destination),
			attribute.String("messaging.operation.name", "send"), attribute.String("messaging.operation.type", "send"),
		},
	}
}

// Publish implements relay.Publisher.
func (p *tracedPublisher) Publish(ctx context.Context, groups []relay.Group) error {
	parent, links, messages := requestsOf(ctx, groups)
	ctx, span := p.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), p.name,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(p.attributes...), trace.WithLinks(links...))
	defer span.End()
	err := p.Publisher.Publish(ctx, groups)
	if !span.IsRecording() {
		return err
	}
	span.SetAttributes(attribute.Int("messaging.batch.message_count", messages), attribute.Int("outbox.batch.key_count", len(groups)))
	if err != nil {
		span.SetAttributes(attribute.String("error.type", relay.ReasonOf(err)))
		if failed, ok := errors.AsType[*relay.PublishError](err); ok {
			span.SetAttributes(attribute.Int("outbox.batch.failed_key_count", len(failed.Keys)))
		}
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// requestsOf returns the context of the first sampled request, otherwise that of the first
// request with a context, and links to the sampled requests.
func requestsOf(ctx context.Context, groups []relay.Group) (parent trace.SpanContext, links []trace.Link, messages int) {
	last := "" // events of one request follow each other
	for g := range groups {
		messages += len(groups[g].Messages)
		for m := range groups[g].Messages {
			text := groups[g].Messages[m].Traceparent
			sampled := isSampled(text)
			if text == "" || text == last || len(links) == maxLinks || !sampled && parent.IsValid() {
				continue
			}
			last = text
			request := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": text}))
			if request.IsSampled() {
				links = append(links, trace.Link{SpanContext: request})
			}
			if !parent.IsValid() || request.IsSampled() && !parent.IsSampled() {
				parent = request
			}
		}
	}
	return parent, links, messages
}

// isSampled reports whether the flags of a W3C traceparent contain that of a sampled trace. It
// saves the parsing of the others.
func isSampled(traceparent string) bool {
	const flags = 55 // length up to the end of the flags
	return len(traceparent) >= flags && strings.IndexByte("13579bdf", traceparent[flags-1]) >= 0
}
