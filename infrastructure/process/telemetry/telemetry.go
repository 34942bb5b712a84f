// Package telemetry sets up logs, metrics and traces of the processes.
//
// It owns the form of log lines, the OpenTelemetry providers and their
// shutdown. Other packages decide on their measurements; they take a
// *slog.Logger, a metric.MeterProvider and a trace.TracerProvider and do not
// import this one.
//
// Invariants:
//   - Metrics are always available for scraping ([Telemetry.Metrics]).
//     Metrics and traces leave the process over OTLP only if one of the
//     standard OTEL_EXPORTER_OTLP_ variables names an endpoint.
//   - Without an exporter spans are not recorded but still have ids, so that a
//     request can be followed through events and logs.
//   - No personal data: nothing here logs values that it was not given.
//
// Goroutines: the OpenTelemetry SDK runs one per periodic exporter;
// [Telemetry.Shutdown] flushes and ends them.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options describe the process to the telemetry backend.
type Options struct {
	Version  string // of the build, for example v1.2.3; default unknown
	Instance string // distinguishes processes of one service; default none
	// LookupEnv finds OTEL_ variables; nil means that none is set. The
	// exporters read their details (headers, time-outs) from the process's
	// environment themselves.
	LookupEnv func(string) (string, bool)
}

// Telemetry holds the providers of one process. Its fields are safe for
// concurrent use.
type Telemetry struct {
	Meters  metric.MeterProvider
	Tracers trace.TracerProvider
	Metrics http.Handler // serves all metrics in the Prometheus text format

	exporting bool // of traces
	shutdown  []func(context.Context) error
}

// Start builds the providers for a service, for example feedbox-api. The
// caller must call Shutdown. Exporters connect lazily, so that an absent
// collector does not keep the service from starting.
func Start(ctx context.Context, service string, o *Options) (*Telemetry, error) {
	if o == nil {
		o = &Options{}
	}
	res, err := describe(ctx, service, o)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{}
	if err := t.startMetrics(ctx, res, o); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if err := t.startTraces(ctx, res, o); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// describe builds the resource that every metric and span carries. The
// variables OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win over the code.
func describe(ctx context.Context, service string, o *Options) (*resource.Resource, error) {
	attributes := []attribute.KeyValue{
		attribute.String("service.name", service),
		attribute.String("service.version", cmp.Or(o.Version, "unknown")),
	}
	if o.Instance != "" {
		attributes = append(attributes, attribute.String("service.instance.id", o.Instance))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry resource: %w", err)
	}
	return res, nil
}

// Exported returns Tracers, or nil if no exporter is configured. It is for parts whose spans have
// no use but to be exported.
func (t *Telemetry) Exported() trace.TracerProvider {
	if !t.exporting {
		return nil
	}
	return t.Tracers
}

// Shutdown flushes pending data and ends all exporters. ctx bounds it.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var failed []error
	for _, shutdown := range t.shutdown {
		failed = append(failed, shutdown(ctx))
	}
	t.shutdown = nil
	return errors.Join(failed...)
}

func (t *Telemetry) startMetrics(ctx context.Context, res *resource.Resource, o *Options) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	scraped, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return fmt.Errorf("prometheus exporter: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(scraped)}
	if o.exports("METRICS") {
		pushed, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return fmt.Errorf("OTLP metric exporter: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(pushed)))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t.Meters = provider
	t.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

func (t *Telemetry) startTraces(ctx context.Context, res *resource.Resource, o *Options) error {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if o.exports("TRACES") {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return fmt.Errorf("OTLP trace exporter: %w", err)
		}
		// The sampler comes from OTEL_TRACES_SAMPLER, by default all.
		options = append(options, sdktrace.WithBatcher(exporter))
		t.exporting = true
	} else {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.Tracers = provider
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return nil
}

// exports reports whether a signal (METRICS or TRACES) is sent over OTLP,
// by the variables of the OpenTelemetry specification.
func (o *Options) exports(signal string) bool {
	value := func(name string) string {
		if o.LookupEnv == nil {
			return ""
		}
		v, _ := o.LookupEnv(name)
		return v
	}
	if strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") || value("OTEL_"+signal+"_EXPORTER") == "none" {
		return false
	}
	return value("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || value("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}
