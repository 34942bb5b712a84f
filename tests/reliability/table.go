package main

import (
	"fmt"
	"slices"
	"strings"

	"feedbox/tests/testkit"
)

// columns has the headings and cells of the table.
var columns = []struct {
	heading string
	cell    func(r *testkit.Result) string
}{
	{"Fault", func(r *testkit.Result) string { return r.Fault }},
	{"What was done", what},
	{"Injected", injected},
	{"Events", func(r *testkit.Result) string { return count(r.Events) }},
	{"Duplicates sent", func(r *testkit.Result) string { return count(r.DuplicatesSent) }},
	{"Behind the broker", func(r *testkit.Result) string { return count(r.DuplicatesSeen) }},
	{"Out of order", func(r *testkit.Result) string { return count(r.OrderViolations) }},
	{"Lost", func(r *testkit.Result) string { return count(r.Lost) }},
	{"Takeover p50 / p99", takeover},
	{"Recovery", func(r *testkit.Result) string { return seconds(r.Recovery) }},
	{"Seed", seed},
	{"Commit", func(r *testkit.Result) string { return r.Commit }},
}

// render returns the table with its notes.
func render(records []testkit.Result) string {
	var b strings.Builder
	var headings, rules []string
	for _, c := range columns {
		headings, rules = append(headings, c.heading), append(rules, "---")
	}
	row(&b, headings)
	row(&b, rules)
	var notes []string
	for i := range records {
		r := &records[i]
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.cell(r))
		}
		if r.Note != "" {
			at := slices.Index(notes, r.Note)
			if at < 0 {
				at = len(notes)
				notes = append(notes, r.Note)
			}
			cells[1] += fmt.Sprintf(" [%d]", at+1)
		}
		if r.Failed {
			cells[0] += " **failed**"
		}
		row(&b, cells)
	}
	b.WriteByte('\n')
	for i, note := range notes {
		fmt.Fprintf(&b, "[%d] %s.\n", i+1, strings.TrimSuffix(clean(note), "."))
	}
	if len(notes) > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

func row(b *strings.Builder, cells []string) {
	b.WriteByte('|')
	for _, cell := range cells {
		b.WriteByte(' ')
		b.WriteString(clean(cell))
		b.WriteString(" |")
	}
	b.WriteByte('\n')
}

// clean removes line breaks and escapes bars, so that a text stays in its cell.
func clean(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func what(r *testkit.Result) string {
	text := fmt.Sprintf("%s (`%s`)", r.Name, r.Test)
	if r.Simulated > 0 {
		text += fmt.Sprintf("; %s simulated", hours(r.Simulated))
	}
	return text
}

func injected(r *testkit.Result) string {
	if r.Of == 0 || r.Of == r.Injections {
		return count(r.Injections)
	}
	return count(r.Injections) + " of " + count(r.Of)
}

func takeover(r *testkit.Result) string {
	if r.TakeoverP99 == 0 {
		return "-"
	}
	return seconds(r.TakeoverP50) + " / " + seconds(r.TakeoverP99)
}

func seed(r *testkit.Result) string {
	if r.Seed == 0 {
		return "-"
	}
	return fmt.Sprint(r.Seed)
}

func hours(h float64) string {
	if h < 10 {
		return fmt.Sprintf("%.1f h", h)
	}
	return fmt.Sprintf("%.0f h", h)
}

// seconds formats a duration with its significant digits; 0 means not measured.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "-"
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// count writes a number with a comma between thousands.
func count(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
