package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"go.opentelemetry.io/otel/trace"
)

// LogOptions select level and form of the log. The zero value logs from info
// upwards, coloured on a terminal and as JSON elsewhere.
type LogOptions struct {
	Level  string // debug, info, warn or error; default info
	Format string // auto, json or text; default auto
	// NoColor keeps escape codes out of the text format; set it when the
	// environment variable NO_COLOR is not empty.
	NoColor bool
	// Variable, if not nil, receives the level and can change it later.
	Variable *slog.LevelVar
}

// NewLogger returns a logger that writes to w. Lines written under a span
// carry trace_id and span_id. An unknown level or format is an error.
func NewLogger(w io.Writer, o *LogOptions) (*slog.Logger, error) {
	if o == nil {
		o = &LogOptions{}
	}
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(cmp.Or(o.Level, "info"))); err != nil {
		return nil, fmt.Errorf("log level %q: use debug, info, warn or error", o.Level)
	}
	level := o.Variable
	if level == nil {
		level = new(slog.LevelVar)
	}
	level.Set(parsed)

	terminal := isTerminal(w)
	format := cmp.Or(o.Format, "auto")
	if format == "auto" {
		format = "json"
		if terminal {
			format = "text"
		}
	}
	var handler slog.Handler
	switch format {
	case "json":
		handler = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: readable})
	case "text":
		handler = tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly + ".000", NoColor: o.NoColor || !terminal})
	default:
		return nil, fmt.Errorf("log format %q: use auto, json or text", o.Format)
	}
	return slog.New(spanHandler{handler}), nil
}

// readable formats durations such as 1.5s, because slog writes nanoseconds to JSON.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// isTerminal reports whether w is a character device, such as a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// spanHandler adds the ids of the current span.
type spanHandler struct{ slog.Handler }

func (h spanHandler) Handle(ctx context.Context, record slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		record.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, record)
}

func (h spanHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return spanHandler{h.Handler.WithAttrs(attrs)}
}

func (h spanHandler) WithGroup(name string) slog.Handler {
	return spanHandler{h.Handler.WithGroup(name)}
}
