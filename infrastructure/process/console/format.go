package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Format is the format of results. It is a flag value.
type Format string

// The formats.
const (
	FormatTable Format = "table"
	FormatJSON  Format = "json"
)

// Set implements the flag's value; it takes "table" or "json".
func (f *Format) Set(text string) error {
	switch Format(text) {
	case FormatTable, FormatJSON:
		*f = Format(text)
		return nil
	}
	return fmt.Errorf("%q is no format: give table or json", text)
}

// String returns the format, by default table.
func (f *Format) String() string {
	if *f == "" {
		return string(FormatTable)
	}
	return string(*f)
}

// Type returns the name of the value in help texts.
func (*Format) Type() string { return "table|json" }

// JSON writes v, indented, and a line break.
func JSON(w io.Writer, v any) error { return write(w, v, "  ") }

// JSONLine writes v in one line, for streams of values.
func JSONLine(w io.Writer, v any) error { return write(w, v, "") }

func write(w io.Writer, v any, indent string) error {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	if err == nil {
		_, err = io.WriteString(w, Plain(text.String())) // JSON leaves some control characters as they are
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Age formats a duration in at most two units: 1.2s, 3m20s, 4h5m, 2d7h.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "m")
	}
	return two(d, 24*time.Hour, "d", time.Hour, "h")
}

func two(d, large time.Duration, l string, small time.Duration, s string) string {
	d = d.Truncate(small)
	if rest := d % large / small; rest != 0 {
		return fmt.Sprintf("%d%s%d%s", d/large, l, rest, s)
	}
	return fmt.Sprintf("%d%s", d/large, l)
}

// Time writes a time to the second in UTC; the zero time is "".
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
