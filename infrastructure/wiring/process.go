package wiring

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/hostguard"
	"feedbox/infrastructure/process/telemetry"
	"feedbox/infrastructure/relay/monitor"
)

// StopMargin is the time of a stop after the drain: to release leases, flush telemetry and
// close connections. Together with the default drain it is less than 30 s, because
// platforms then kill the process.
const StopMargin = 8 * time.Second

// process returns the options of both processes: the log, and a stop timeout that exceeds
// the drain timeout and reserves time for every stop hook.
func process(log *slog.Logger, drain time.Duration) fx.Option {
	return fx.Options(
		fx.Supply(log),
		fx.StopTimeout(drain+StopMargin),
		fx.Decorate(func(lc fx.Lifecycle) fx.Lifecycle { return &stops{Lifecycle: lc, total: drain + StopMargin} }),
		fx.WithLogger(func() fxevent.Logger {
			events := &fxevent.SlogLogger{Logger: log}
			events.UseLogLevel(slog.LevelDebug)
			events.UseErrorLevel(slog.LevelDebug) // Run returns the error, so it must not be logged twice
			return events
		}),
	)
}

// telemetry returns the shared telemetry, or starts its own, which the stop flushes.
func (p Params) telemetry(lc fx.Lifecycle, service, instance string) (*telemetry.Telemetry, error) {
	if p.Telemetry != nil {
		return p.Telemetry, nil
	}
	ctx := context.Background() //nolint:forbidigo // fx constructors have none; nothing here blocks
	t, err := telemetry.Start(ctx, service, &telemetry.Options{
		Version: p.Version, Instance: instance, LookupEnv: os.LookupEnv, //nolint:forbidigo // by their specification, OTEL_ variables apply to the process
	})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(t.Shutdown))
	return t, nil
}

// traceparent returns the W3C trace context of a request, or "". It is stored in events, so
// that one trace spans the API, the relay and the consumer.
func traceparent(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return ""
	}
	// The format of propagation.TraceContext, but without its map, because this runs for each
	// event.
	traceID, spanID := span.TraceID(), span.SpanID()
	text := make([]byte, 0, 55)
	text = hex.AppendEncode(append(text, "00-"...), traceID[:])
	text = hex.AppendEncode(append(text, '-'), spanID[:])
	return string(hex.AppendEncode(append(text, '-'), []byte{byte(span.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom))}))
}

// serveOn returns a service that serves one listener.
func serveOn(run func(ctx context.Context, l net.Listener) error, l net.Listener) func(ctx context.Context) error {
	return func(ctx context.Context) error { return run(ctx, l) }
}

// allowedHosts returns the hosts that a listener on a loopback address serves: those of the
// configuration and the host of its own address. insecure says that another guard is before it,
// so every host is served.
func allowedHosts(given []string, listen string, insecure bool) []string {
	if insecure {
		return []string{hostguard.Any}
	}
	return append(slices.Clone(given), listen)
}

// runOps serves probes and metrics if the process has a socket for them.
func runOps(lc fx.Lifecycle, down fx.Shutdowner, log *slog.Logger, ops *httpapi.Ops, sockets Sockets) {
	if sockets.Ops != nil {
		background(lc, down, log, "ops", serveOn(ops.Run, sockets.Ops))
	}
}

// dependencies returns the function that shows needs in the body of /readyz.
func dependencies(needs monitor.Dependencies) func() map[string]httpapi.Dependency {
	return func() map[string]httpapi.Dependency {
		shown := make(map[string]httpapi.Dependency, len(needs))
		for name, state := range needs.States() {
			shown[name] = httpapi.Dependency(state)
		}
		return shown
	}
}
