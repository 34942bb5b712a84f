// Package telemetry sets up what the processes say about themselves: logs,
// metrics and traces.
//
// It owns the form of log lines, the OpenTelemetry providers and their
// shutdown. What is measured is decided where it happens; those packages take
// a *slog.Logger, a metric.MeterProvider and a trace.TracerProvider and know
// nothing of this one.
//
// Invariants:
//   - Metrics are always available for scraping ([Telemetry.Metrics]).
//     Metrics and traces leave the process over OTLP only if one of the
//     standard OTEL_EXPORTER_OTLP_ variables names an endpoint.
//   - Without an exporter spans are not recorded, but they still have ids, so
//     that a trace can be followed through requests, events and logs.
//   - No personal data: nothing here logs values that it was not given.
//
// Goroutines: the OpenTelemetry SDK runs one per periodic exporter;
// [Telemetry.Shutdown] flushes and ends them.
package telemetry
