package console

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
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
