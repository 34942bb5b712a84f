package main

import (
	"fmt"
	"slices"
	"strings"
)

func count(results []result, v verdict) int {
	n := 0
	for i := range results {
		if results[i].verdict == v {
			n++
		}
	}
	return n
}

// report is the page README.md: the mistakes that must be covered, then a table of
// mutants per directory.
func report(results []result, all []*mutant, required []requirement) string {
	var b strings.Builder
	b.WriteString("# Mutants\n\n")
	b.WriteString("Each row is a mistake, made by a patch in this directory: what it takes away, and the behaviour test that notices.\n")
	b.WriteString("This page is written by `go run ./tests/mutants -update`; the seconds include the build.\n\n")
	fmt.Fprintf(&b, "**%d of %d mutants killed.**\n", count(results, killed), len(results))
	if len(results) == len(all) {
		b.WriteString("\n## Mistakes that must be noticed\n\n| Mistake | Mutants |\n|---|---|\n")
		for _, r := range required {
			names := make([]string, len(r.mutants))
			for i, name := range r.mutants {
				names[i] = fmt.Sprintf("[%s](%s.patch)", name, name)
			}
			fmt.Fprintf(&b, "| %s | %s |\n", cell(r.mistake), strings.Join(names, ", "))
		}
	}
	dir := ""
	for i := range results {
		r := &results[i]
		head, name, _ := strings.Cut(r.mutant.name, "/")
		if head != dir {
			dir = head
			fmt.Fprintf(&b, "\n## %s\n\n| Mutant | Takes away | Killed by | s |\n|---|---|---|---|\n", head)
		}
		by := string(r.verdict)
		if r.verdict == killed {
			by = fmt.Sprintf("%s: %s", r.packages(), cell(r.by()))
		}
		fmt.Fprintf(&b, "| [%s](%s.patch) | %s | %s | %.1f |\n", name, r.mutant.name, cell(r.mutant.removes), by, r.took.Seconds())
	}
	return b.String()
}

// packages names the packages whose tests were asked for.
func (r *result) packages() string {
	var names []string
	for _, t := range r.mutant.kills {
		if name := strings.TrimPrefix(t.pkg, "./"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// cell escapes what would end a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
