package console

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Table is rows under a heading.
type Table struct {
	heading []string
	rows    [][]string
}

// NewTable returns an empty table.
func NewTable(heading ...string) *Table { return &Table{heading: heading} }

// Row adds one row. Values are written as fmt.Sprint does; an empty one as "-".
func (t *Table) Row(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		if row[i] = Clean(fmt.Sprint(v)); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// Write writes the table; without rows, only empty.
func (t *Table) Write(w io.Writer, empty string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(t.heading) > 0 {
		_, _ = fmt.Fprintln(columns, strings.Join(t.heading, "\t")) // Flush tells of errors
	}
	for _, row := range t.rows {
		_, _ = fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// Clean returns text in one line without control characters.
func Clean(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// Short returns text cleaned and cut to at most n characters.
func Short(text string, n int) string {
	runes := []rune(Clean(text))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}
