package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/term"
)

// standardWidth is the width of tables without a terminal, because every terminal has it.
const standardWidth = 80

// minLast is the minimum width of a last column beside the others.
const minLast = 20

// Table is a heading with rows. It is at most as wide as the terminal, or 80 characters if
// that is more: the last column is wrapped, and columns without room continue below their row.
// Only the last column is cut; the others hold names, which callers copy.
type Table struct {
	heading []string
	rows    [][]string
	notes   map[int]string // by row
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

// Next adds the advice of a finding below the row that was added last. It is not wrapped, because
// it may be a command.
func (t *Table) Next(advice string) {
	if advice == "" {
		return
	}
	if t.notes == nil {
		t.notes = make(map[int]string)
	}
	t.notes[len(t.rows)-1] = "    next: " + strings.ReplaceAll(Plain(advice), "\n", "\n    ") + "\n"
}

// Write writes the table; without rows, only empty.
func (t *Table) Write(w io.Writer, empty string) error {
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	var out strings.Builder
	widths := t.widths()
	if len(t.heading) > 0 {
		line(&out, t.heading, widths, Width(w), nil)
	}
	for i, row := range t.rows {
		line(&out, row, widths, Width(w), t.Paint)
		out.WriteString(t.notes[i])
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

// below is the indent of columns that continue below their row.
const below = 4

// line writes one row.
func line(out *strings.Builder, row []string, widths []int, width int, paint func(int, string) string) {
	if paint == nil {
		paint = func(_ int, text string) string { return text }
	}
	at, pad := 0, 0 // the position in the line, and the spaces that precede the next cell
	for i, wide := range widths {
		if at > below && at+wide > width {
			out.WriteString("\n" + strings.Repeat(" ", below))
			at, pad = below, 0
		}
		out.WriteString(strings.Repeat(" ", pad) + paint(i, row[i]))
		at, pad = at+wide+2, wide+2-utf8.RuneCountInString(row[i])
	}
	end, room := len(row)-1, width-at
	parts := Wrap(row[end], max(room, minLast))
	if len(parts) > 1 && room < minLast || room < utf8.RuneCountInString(parts[0]) {
		out.WriteString("\n" + strings.Repeat(" ", below))
		at, pad = below, 0
		parts = Wrap(row[end], width-below)
	}
	for i, part := range parts {
		if i > 0 {
			out.WriteString("\n")
			pad = at
		}
		if part != "" {
			out.WriteString(strings.Repeat(" ", pad) + paint(end, part))
		}
	}
	out.WriteString("\n")
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

// Plain returns text without characters that control a terminal, except line breaks and tabs. They
// become escapes of JSON, so that a JSON document keeps its value.
func Plain(text string) string {
	if !strings.ContainsFunc(text, controls) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if !controls(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

func controls(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r)
}

// Tail returns the end of text, cleaned and cut to at most n characters, for names that differ there.
func Tail(text string, n int) string {
	runes := []rune(Clean(text))
	if len(runes) <= n {
		return string(runes)
	}
	return "…" + string(runes[len(runes)-n+1:])
}

// Middle is like Tail but keeps both ends, for errors: the end has the cause, because each caller
// puts its own words before it.
func Middle(text string, n int) string {
	runes := []rune(Clean(text))
	if len(runes) <= n {
		return string(runes)
	}
	head := n / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}
