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
