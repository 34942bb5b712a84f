package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// change is the part of a mutant that edits one file.
type change struct {
	file  string // slash-separated, relative to the module root
	hunks []hunk
}

// hunk is one edit: its context and removed lines must match exactly one run of lines.
type hunk []hunkLine

type hunkLine struct {
	op   byte // ' ' context, '-' removed, '+' added
	text string
}

// apply returns the file with the hunks applied. Each hunk is searched in the whole
// file, so code may move. A hunk of added lines only creates a file.
//
// Only significant lines are compared, because comments and alignment change more often
// than code. Comments between two matched lines stay; a comment at the end of a removed
// line goes with it.
func (c *change) apply(source string) (string, error) {
	normalize := normalizer(c.file)
	lines := strings.Split(source, "\n")
	var significant []int // indices of lines
	var code []string     // the same lines, normalized
	for i, line := range lines {
		if line = normalize(line); line != "" {
			significant, code = append(significant, i), append(code, line)
		}
	}
	removed := map[int]bool{}
	added := map[int][]string{} // by the line that follows them
	for number, h := range c.hunks {
		start, err := h.find(code, normalize)
		if err != nil {
			return "", fmt.Errorf("%s: hunk %d: %w", c.file, number+1, err)
		}
		next := start
		for _, l := range h {
			switch {
			case l.op == '+':
				at := 0
				if next > start {
					at = significant[next-1] + 1
				} else if next < len(significant) {
					at = significant[next]
				}
				added[at] = append(added[at], l.text)
			case normalize(l.text) == "":
			case l.op == '-':
				if removed[significant[next]] {
					return "", fmt.Errorf("%s: hunk %d: removes a line that an earlier hunk removes", c.file, number+1)
				}
				removed[significant[next]] = true
				next++
			default:
				next++
			}
		}
	}
	var result []string
	for i, line := range lines {
		result = append(result, added[i]...)
		if !removed[i] {
			result = append(result, line)
		}
	}
	return strings.Join(append(result, added[len(lines)]...), "\n"), nil
}

// find returns the index in code of the only run of lines that the hunk matches.
func (h hunk) find(code []string, normalize func(string) string) (int, error) {
	var old []string
	for _, l := range h {
		if text := normalize(l.text); l.op != '+' && text != "" {
			old = append(old, text)
		}
	}
	if len(old) == 0 && len(code) > 0 {
		return 0, errors.New("ambiguous: add context")
	}
	found, matches, most := 0, 0, 0
	for start := range max(1, len(code)) {
		n := 0
		for n < len(old) && start+n < len(code) && code[start+n] == old[n] {
			n++
		}
		most = max(most, n)
		if n == len(old) {
			found, matches = start, matches+1
		}
	}
	switch matches {
	case 0:
		return 0, fmt.Errorf("no match: line %d of the old side, %q", most+1, old[most])
	case 1:
		return found, nil
	}
	return 0, fmt.Errorf("ambiguous: add context (%d matches)", matches)
}

// normalizer returns the function that prepares lines of a file for comparison. It maps
// lines without significance to "". It sees one line at a time, so that a line of a hunk
// and a line of the file give the same result even inside a raw string.
func normalizer(file string) func(string) string {
	if path.Ext(file) != ".go" {
		return func(line string) string { return line }
	}
	return func(line string) string {
		return strings.Join(strings.Fields(line[:commentStart(line)]), " ")
	}
}

// commentStart returns the index of the // comment in a line of Go, or the length of the
// line. Directives count as code, because removing one changes the program.
func commentStart(line string) int {
	var quote byte
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case slices.Contains([]byte("\"'`"), c):
			quote = c
		case strings.HasPrefix(line[i:], "//") && !strings.HasPrefix(line[i:], "//go:"):
			return i
		}
	}
	return len(line)
}
