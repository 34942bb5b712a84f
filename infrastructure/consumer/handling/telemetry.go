package handling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/consumer"
)

// Source is the entity that a kit receives from, by the semantic conventions for messaging.
type Source struct {
	System       string // for example "servicebus"
	Destination  string // name of the topic, queue or group of queues
	Subscription string // of the topic; "" = none
}

// telemetry contains the instruments of a kit. All have the attributes of the source.
type telemetry struct {
	tracer trace.Tracer // nil: no spans
	span   string       // name of a span
	source []attribute.KeyValue
	set    metric.MeasurementOption // of source

	metered    bool
	received   metric.Int64Counter
	took       metric.Float64Histogram
	handled    metric.Int64Counter
	failed     metric.Int64Counter
	retried    metric.Int64Counter
	dead       metric.Int64Counter
	parked     metric.Int64Counter
	gaps       metric.Int64Counter
	forks      metric.Int64Counter
	duplicates metric.Int64Counter
	dropped    metric.Int64Counter
	inHand     metric.Int64UpDownCounter
	lag        metric.Float64Histogram
}

// Buckets in seconds: of handlers, by the semantic conventions, and of the lag up to a day.
var (
	tookBuckets = metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
	lagBuckets  = metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400)
)

func newTelemetry(s Source, meters metric.MeterProvider, tracers trace.TracerProvider) (*telemetry, error) {
	t := &telemetry{span: "process " + s.Destination, source: []attribute.KeyValue{
		attribute.String("messaging.system", s.System), attribute.String("messaging.destination.name", s.Destination),
		attribute.String("messaging.operation.name", "process"), attribute.String("messaging.operation.type", "process"),
	}}
	if s.Subscription != "" {
		t.source = append(t.source, attribute.String("messaging.destination.subscription.name", s.Subscription))
	}
	if tracers != nil {
		t.tracer = tracers.Tracer("feedbox/consumer")
	}
	if meters == nil {
		return t, nil
	}
	t.metered, t.set = true, metric.WithAttributeSet(attribute.NewSet(t.source...))
	meter := meters.Meter("feedbox/consumer")
	var errs []error
	count := func(into *metric.Int64Counter, name, unit, description string) {
		var err error
		*into, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		if err == nil { // a rule on the increase of a counter would miss a first value of 1
			(*into).Add(context.Background(), 0, t.set) //nolint:forbidigo // constructors have none; nothing here blocks
		}
	}
	seconds := func(into *metric.Float64Histogram, name, description string, buckets metric.HistogramOption) {
		var err error
		*into, err = meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), buckets)
		errs = append(errs, err)
	}
	count(&t.received, "messaging.client.consumed.messages", "{message}", "deliveries from the broker")
	seconds(&t.took, "messaging.process.duration", "one call of the handler", tookBuckets)
	count(&t.handled, "outbox.consumer.handled", "{event}", "events that the handler accepted")
	count(&t.failed, "outbox.consumer.failed", "{call}", "calls of the handler that failed")
	count(&t.retried, "outbox.consumer.retried", "{event}", "attempts that ended in another one, also those that waited for a missing event")
	count(&t.dead, "outbox.consumer.dead_lettered", "{event}", "events moved to the dead-letter queue by the kit; the broker moves others")
	count(&t.parked, "outbox.consumer.parked", "{event}", "events stored until an operator decides: refused ones, and later ones of their keys")
	count(&t.gaps, "outbox.consumer.gaps", "{event}", "events handled although an earlier event of their key had not arrived")
	count(&t.forks, "outbox.consumer.forks", "{event}", "events of another history than handled ones, which the store has lost in a failover or restore")
	count(&t.duplicates, "outbox.consumer.duplicates", "{event}", "events dropped because they were handled before, or were sent again for another consumer")
	count(&t.dropped, "outbox.consumer.dropped", "{event}", "refused events that the policy of their action drops")
	seconds(&t.lag, "outbox.consumer.lag", "from the creation of an event, just before its commit, until it was handled", lagBuckets)
	var err error
	t.inHand, err = meter.Int64UpDownCounter("outbox.consumer.in_hand", metric.WithUnit("{event}"),
		metric.WithDescription("events that are handled or wait for their key or a retry"))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("consumer metrics: %w", err)
	}
	return t, nil
}

// Received counts a delivery. Released must be called for it.
func (r *Runner) Received(ctx context.Context) {
	if t := r.telemetry; t.metered {
		t.received.Add(ctx, 1, t.set)
		t.inHand.Add(ctx, 1, t.set)
	}
}

// Released counts the end of a delivery, whether it was settled or not.
func (r *Runner) Released(ctx context.Context) {
	if t := r.telemetry; t.metered {
		t.inHand.Add(ctx, -1, t.set)
	}
}

// start starts the span of a handler call. The span is in the trace of the request that caused the
// event, below the context in the message: the event has one cause, so that a link alone would split
// the trace. It returns nil if there is no tracer.
func (t *telemetry) start(ctx context.Context, e *consumer.Event) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	if e.Traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": e.Traceparent})
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(t.source...)}
	if request := trace.SpanContextFromContext(ctx); request.IsSampled() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: request})) // the conventions want it besides the parent
	}
	ctx, span := t.tracer.Start(ctx, t.span, options...)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("messaging.message.id", e.ID), attribute.String("outbox.event.key", e.Key),
			attribute.String("outbox.event.action", e.Action), attribute.Int("outbox.event.delivery", e.DeliveryCount))
	}
	return ctx, span
}

// finish ends what start has started. span may be nil.
func (t *telemetry) finish(ctx context.Context, span trace.Span, began time.Time, err error) {
	failed := err != nil && !errors.Is(err, consumer.Defer())
	if span != nil {
		if failed {
			span.SetAttributes(attribute.String("error.type", errorType(err)))
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
	switch {
	case t.metered && failed:
		reason := metric.WithAttributes(attribute.String("error.type", errorType(err)))
		t.took.Record(ctx, time.Since(began).Seconds(), t.set, reason)
		t.failed.Add(ctx, 1, t.set)
	case t.metered:
		t.took.Record(ctx, time.Since(began).Seconds(), t.set)
	}
}

// count counts an outcome.
func (t *telemetry) count(ctx context.Context, o *consumer.Outcome) {
	if !t.metered {
		return
	}
	settled := true
	switch o.Action {
	case consumer.Handled:
		t.handled.Add(ctx, 1, t.set)
		if !o.Event.CreatedAt.IsZero() {
			t.lag.Record(ctx, max(0, time.Since(o.Event.CreatedAt).Seconds()), t.set) // the clocks of two machines may differ
		}
	case consumer.Dropped:
		if o.Err != nil {
			t.dropped.Add(ctx, 1, t.set)
		} else {
			t.duplicates.Add(ctx, 1, t.set)
		}
	case consumer.DeadLettered:
		t.dead.Add(ctx, 1, t.set)
	case consumer.Parked:
		t.parked.Add(ctx, 1, t.set)
	case consumer.Abandoned:
		t.retried.Add(ctx, 1, t.set)
		settled = false
	case consumer.Deferred, consumer.Unsettled:
		settled = false
	}
	if settled && o.Verdict == consumer.Gap {
		t.gaps.Add(ctx, 1, t.set)
	}
	if settled && o.Verdict == consumer.Fork {
		t.forks.Add(ctx, 1, t.set)
	}
}

// errorType returns the reason of a failure as it appears in metrics, spans and logs.
func errorType(err error) string {
	reason, dead := errors.AsType[*consumer.DeadLetterError](err)
	_, panicked := errors.AsType[*consumer.PanicError](err)
	switch {
	case dead:
		return reason.Reason
	case panicked:
		return "panic"
	case errors.Is(err, errWaitForMissing):
		return "missing_event"
	case errors.Is(err, consumer.ErrTimeout):
		return "timeout"
	case errors.Is(err, consumer.ErrLockLost):
		return "lock_lost"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return fmt.Sprintf("%T", err)
}
