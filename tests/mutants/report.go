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

// report returns the results as Markdown: one table per archive. The seconds include both
// runs and the build.
func report(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%d of %d mutants killed.**\n", count(results, killed), len(results))
	previous := ""
	for i := range results {
		r := &results[i]
		archive, name, _ := strings.Cut(r.mutant.name, "/")
		if archive != previous {
			previous = archive
			fmt.Fprintf(&b, "\n## %s\n\n| Mutant | Removes | Killed by | s |\n|---|---|---|---|\n", archive)
		}
		by := string(r.verdict)
		if r.verdict == killed {
			by = fmt.Sprintf("%s: %s", r.packages(), cell(r.by()))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f |\n", name, cell(r.mutant.removes), by, r.took.Seconds())
	}
	return b.String()
}

// packages returns the packages of the kills lines.
func (r *result) packages() string {
	var names []string
	for _, t := range r.mutant.kills {
		if name := strings.TrimPrefix(t.pkg, "./"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// cell escapes a text for a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
