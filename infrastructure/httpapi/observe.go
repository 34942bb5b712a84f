package httpapi

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"feedbox/infrastructure/httpapi/auth"
	"feedbox/infrastructure/httpapi/limit"
)

// scope names the instruments and spans of this package.
const scope = "feedbox/infrastructure/httpapi"

// observer is the outermost layer: logs, metrics and spans of requests.
type observer struct {
	timeout   time.Duration // of a request
	logger    *slog.Logger
	tracer    trace.Tracer
	durations metric.Float64Histogram
	active    atomic.Int64 // requests in flight
	refusals  limit.Sampler
	// pseudonyms is the key for the names of callers in the log.
	pseudonyms []byte
	labels     sync.Map // outcome -> labels, bounded by the number of routes, methods and statuses
}

// outcome identifies a time series of the metrics.
type outcome struct {
	method, route string
	status        int
}

// labels holds the attributes of an outcome. They are cached, because building them for
// each request allocates.
type labels struct {
	attributes []attribute.KeyValue
	set        metric.MeasurementOption
}

func (o *observer) labelsOf(one outcome) labels {
	if known, ok := o.labels.Load(one); ok {
		return known.(labels) //nolint:forcetypeassert // only labels are stored
	}
	l := labels{attributes: []attribute.KeyValue{
		attribute.String("http.request.method", one.method),
		attribute.String("http.route", one.route),
		attribute.Int("http.response.status_code", one.status),
	}}
	l.set = metric.WithAttributeSet(attribute.NewSet(l.attributes...))
	o.labels.Store(one, l)
	return l
}

func newObserver(o *Options) (*observer, error) {
	meter := o.Meters.Meter(scope)
	// Names, units and buckets of the HTTP semantic conventions.
	durations, err := meter.Float64Histogram("http.server.request.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of HTTP server requests."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
	if err != nil {
		return nil, fmt.Errorf("instrument: %w", err)
	}
	observed := &observer{timeout: o.RequestTimeout, logger: o.Logger, tracer: o.Tracers.Tracer(scope), durations: durations, pseudonyms: keysOrRandom(o.TokenKeys)[0]}
	_, err = meter.Int64ObservableUpDownCounter("http.server.active_requests",
		metric.WithUnit("{request}"), metric.WithDescription("Number of active HTTP server requests."),
		metric.WithInt64Callback(func(_ context.Context, observe metric.Int64Observer) error {
			observe.Observe(observed.active.Load())
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("instrument: %w", err)
	}
	return observed, nil
}

// wrap gives each request an id, a trace, a state and a time limit, and records its
// outcome: one log line, one measurement, one span.
func (o *observer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		recorded := &recorder{ResponseWriter: w, state: requestState{requestID: newID().String()}}
		x := &recorded.state
		ctx := r.Context()
		if _, traced := r.Header[headerTraceparent]; traced {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		}
		ctx, span := o.tracer.Start(ctx, r.Method, serverSpan...)
		ctx = withTraceID(context.WithValue(ctx, stateKey{}, x))
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		r = r.WithContext(ctx)
		o.active.Add(1)

		setRequestHeaders(w.Header(), r, x.requestID)
		defer func() {
			if recovered := recover(); recovered != nil {
				o.panicked(recorded, r, recovered)
			}
			o.active.Add(-1)
			o.finish(ctx, span, r, x, time.Since(started))
		}()
		next.ServeHTTP(recorded, r)
	})
}

var serverSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}

// withTraceID adds a random span context if neither the caller nor a tracer provided one,
// so that every request can be found by a trace id.
func withTraceID(ctx context.Context) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	id, span := newID(), newID()
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(id), SpanID: trace.SpanID(span[8:]),
	}))
}

// newID returns a random id. It uses the fast random source, because the id must be unique
// but may be guessed.
func newID() uuid.UUID {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return id
}

// panicked answers 500 after a panic of a handler, or closes the connection if the answer
// has started. It logs the stack.
func (o *observer) panicked(w *recorder, r *http.Request, recovered any) {
	if err, ok := recovered.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(recovered)
	}
	err := fmt.Errorf("panic: %v\n%s", recovered, debug.Stack())
	if w.state.status != 0 {
		w.state.failure = err
		panic(http.ErrAbortHandler)
	}
	fail(w, r, err)
}

func (o *observer) finish(ctx context.Context, span trace.Span, r *http.Request, x *requestState, took time.Duration) {
	status := cmp.Or(x.status, http.StatusOK)
	method := knownMethod(r.Method)
	l := o.labelsOf(outcome{method: method, route: x.route, status: status})
	o.durations.Record(ctx, took.Seconds(), l.set)
	if span.IsRecording() {
		span.SetName(method + " " + x.route)
		span.SetAttributes(l.attributes...)
	}
	span.End()

	o.log(ctx, x, method, status, took)
}

// log writes the access log. Refusals that need no credential, or exceed a limit, are sampled. It
// calls the handler directly, because a slog.Logger would look up the source line of each call.
func (o *observer) log(ctx context.Context, x *requestState, method string, status int, took time.Duration) {
	level := slog.LevelInfo
	failed := x.failure != nil && status != statusClientClosed
	switch {
	case failed && (status == http.StatusInternalServerError || status < http.StatusBadRequest):
		level = slog.LevelError
	case failed:
		level = slog.LevelWarn
	}
	handler := o.logger.Handler()
	if !handler.Enabled(ctx, level) {
		return
	}
	var leftOut int64
	if refused := x.principal.ID == "" || status == http.StatusTooManyRequests || x.code == "overloaded"; refused && status >= http.StatusBadRequest {
		var ok bool
		if ok, leftOut = o.refusals.Line(); !ok {
			return // the metrics have it
		}
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs, slog.String("request_id", x.requestID), slog.String("method", method), slog.String("route", x.route),
		slog.Int("status", status), slog.Int64("bytes", x.bytes), slog.Duration("took", took))
	if x.id != "" {
		attrs = append(attrs, slog.String(x.idKey, x.id))
	}
	if x.principal.ID != "" && x.principal.ID != auth.Anonymous {
		attrs = append(attrs, slog.String("principal", x.principal.Pseudonym(o.pseudonyms)))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", x.code))
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Int64("left_out", leftOut))
	}
	if failed {
		attrs = append(attrs, slog.String("error", x.failure.Error()))
	}
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(attrs...)
	_ = handler.Handle(ctx, line) // like slog, which has nowhere to report the error
}

// knownMethod replaces unknown methods, because clients could otherwise create any number of
// time series.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return "_OTHER"
	}
}

func setRequestHeaders(h http.Header, r *http.Request, requestID string) {
	h[headerRequest] = []string{requestID}
	if id := r.Header.Get(headerClientRequest); id != "" && len(id) <= maxClientRequestID && isVisibleASCII(id) {
		h.Set(headerClientRequest, id)
	}
	for _, constant := range constantHeaders {
		h[constant.name] = constant.values
	}
}

// constantHeaders are the defaults of every answer. All answers share the slices, so a
// handler must replace a header with Set, and never append to it.
var constantHeaders = []struct {
	name   string
	values []string
}{
	{"X-Content-Type-Options", []string{"nosniff"}},
	{"Referrer-Policy", []string{"no-referrer"}},
	{"Content-Security-Policy", []string{"default-src 'none'; frame-ancestors 'none'"}},
	{"Cross-Origin-Resource-Policy", []string{"same-origin"}},
	{"Cache-Control", []string{"no-store"}},
}

func isVisibleASCII(text string) bool {
	for i := range len(text) {
		if text[i] < 0x21 || text[i] > 0x7e {
			return false
		}
	}
	return true
}
