package world

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Trace is the history of a world: faults, log lines of processes from level Info, and lines added
// by the test. It is bounded: the oldest lines are dropped. It is safe for concurrent use.
type Trace struct {
	began time.Time

	mu      sync.Mutex // guards the fields below
	lines   []string
	dropped int
}

const traceLimit = 200_000

func newTrace() *Trace { return &Trace{began: time.Now()} }

// Add adds a line.
func (t *Trace) Add(who, format string, args ...any) {
	line := fmt.Sprintf("%10.3f %-12s %s", time.Since(t.began).Seconds(), who, fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) >= traceLimit {
		half := len(t.lines) / 2
		t.lines = append(t.lines[:0:0], t.lines[half:]...)
		t.dropped += half
	}
	t.lines = append(t.lines, line)
}

// WriteTo writes the history.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var written int64
	if t.dropped > 0 {
		n, err := fmt.Fprintf(w, "(%d older lines dropped)\n", t.dropped)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	n, err := io.WriteString(w, strings.Join(t.lines, "\n")+"\n")
	return written + int64(n), err
}

// processLog writes the log of a process to the trace and collects reports of lost events. It drops
// the log of a crashed process.
type processLog struct {
	w     *World
	who   string
	nic   *nic
	attrs []slog.Attr
}

func (h *processLog) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (h *processLog) Handle(_ context.Context, r slog.Record) error {
	if !h.nic.alive() {
		return nil
	}
	var b strings.Builder
	report := map[string]slog.Value{}
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		report[a.Key] = a.Value
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	switch r.Message {
	case "events missing from the feed":
		h.w.received.missing(report)
	case "unsent events grow old and will expire", "range not read for longer than the event TTL; events may have expired unsent":
		h.w.received.aging()
	}
	if r.Level >= slog.LevelWarn || !noisy[r.Message] {
		h.w.trace.Add(h.who, "%s %s%s", r.Level, r.Message, b.String())
	}
	return nil
}

// noisy messages are left out of the trace.
var noisy = map[string]bool{"relay.lag": true, "request": true}

func (h *processLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &c
}

func (h *processLog) WithGroup(string) slog.Handler { return h }
