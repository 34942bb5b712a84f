package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// standardWidth is the width of tables without a terminal, because every terminal has it.
const standardWidth = 80

// minLast is the minimum width of a last column beside the others.
const minLast = 20

// Table is a heading with rows. It is at most as wide as the terminal, or 80 characters if
// that is more: the last column is wrapped, and moves below its row if there is no room beside
// it. The other columns are never cut.
type Table struct {
	heading []string
	rows    [][]string
	// Paint colours a cell. Default: no colours.
	Paint func(column int, text string) string
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
	var out strings.Builder
	widths := t.widths()
	last := Width(w) - sum(widths)
	if len(t.heading) > 0 {
		line(&out, t.heading, widths, last, nil)
	}
	for _, row := range t.rows {
		line(&out, row, widths, last, t.Paint)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// widths returns the widths of all columns but the last.
func (t *Table) widths() []int {
	rows := t.rows
	if len(t.heading) > 0 {
		rows = append([][]string{t.heading}, rows...)
	}
	widths := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	return widths
}

// line writes one row, with a last column of the given width.
func line(out *strings.Builder, row []string, widths []int, room int, paint func(int, string) string) {
	if paint == nil {
		paint = func(_ int, text string) string { return text }
	}
	for i, width := range widths {
		out.WriteString(paint(i, row[i]))
		out.WriteString(strings.Repeat(" ", width+2-utf8.RuneCountInString(row[i])))
	}
	indent := sum(widths)
	end := len(row) - 1
	parts := Wrap(row[end], max(room, minLast))
	if len(parts) > 1 && room < minLast || room < utf8.RuneCountInString(parts[0]) {
		indent = 4 // below the row
		parts = append([]string{""}, Wrap(row[end], room+sum(widths)-indent)...)
	}
	for i, part := range parts {
		if i > 0 {
			out.WriteString("\n" + strings.Repeat(" ", indent))
		}
		if part != "" {
			out.WriteString(paint(end, part))
		}
	}
	out.WriteString("\n")
}

// sum returns the width of columns with their separators.
func sum(widths []int) int {
	all := 0
	for _, width := range widths {
		all += width + 2
	}
	return all
}

// Width returns the characters per line: those of the terminal, at least 80.
func Width(w any) int {
	if file, ok := w.(*os.File); ok && IsTerminal(file) {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, standardWidth)
		}
	}
	return standardWidth
}

// Wrap breaks text into lines of at most width characters, between words where it can.
// It returns at least one line.
func Wrap(text string, width int) []string {
	var lines []string
	for rest := []rune(text); ; {
		if len(rest) <= width {
			return append(lines, string(rest))
		}
		at := width
		for at > 0 && rest[at] != ' ' {
			at--
		}
		if at == 0 { // one long word
			lines, rest = append(lines, string(rest[:width])), rest[width:]
			continue
		}
		lines, rest = append(lines, string(rest[:at])), rest[at+1:]
	}
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

// Tail is like Short but keeps the end, for names that differ there.
func Tail(text string, n int) string {
	runes := []rune(Clean(text))
	if len(runes) <= n {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-n+1:])
}
