package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// merge returns a result for every mutant: of this run, else of the page of an earlier
// one.
func merge(results []result, all []*mutant, page map[string]row) []result {
	merged := make([]result, len(all))
	for i, m := range all {
		at := slices.IndexFunc(results, func(r result) bool { return r.mutant == m })
		if at >= 0 {
			merged[i] = results[at]
			continue
		}
		merged[i] = result{mutant: m, verdict: notRun}
		if before, ok := page[m.name]; ok {
			merged[i] = result{mutant: m, verdict: killed, before: &before}
		}
	}
	return merged
}

// row is what the page says of a mutant that was killed.
type row struct{ by, seconds string }

var rowPattern = regexp.MustCompile(`(?m)^\| \[[^]]+\]\((.+)\.patch\) \| .* \| ([^|]+: .+) \| ([0-9.]+) \|$`)

// readPage reads the rows of an earlier page; none if there is no page.
func readPage(path string) map[string]row {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	page := map[string]row{}
	for _, m := range rowPattern.FindAllStringSubmatch(string(text), -1) {
		page[m[1]] = row{by: m[2], seconds: m[3]}
	}
	return page
}

// report is the page README.md: the mistakes that must be noticed, then a table of
// mutants per directory.
func report(results []result, required []requirement) string {
	var b strings.Builder
	b.WriteString("# Mutants\n\n")
	b.WriteString("Each row is a mistake, made by a patch in this directory: what it takes away, and the behaviour test that\n")
	b.WriteString("notices: one of its assertions fails, and fails again in a second run. Written by\n")
	b.WriteString("`go run ./tests/mutants -update`; the seconds are of both runs and the build, on a busy machine.\n\n")
	fmt.Fprintf(&b, "**%d of %d mutants killed.**\n", count(results, killed), len(results))
	if len(required) > 0 {
		b.WriteString("\n## Mistakes that must be noticed\n\n| Mistake | Mutants |\n|---|---|\n")
	}
	for _, r := range required {
		names := make([]string, len(r.mutants))
		for i, name := range r.mutants {
			names[i] = fmt.Sprintf("[%s](%s.patch)", name, name)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", cell(r.mistake), strings.Join(names, ", "))
	}
	dir := ""
	for i := range results {
		r := &results[i]
		head, name, _ := strings.Cut(r.mutant.name, "/")
		if head != dir {
			dir = head
			fmt.Fprintf(&b, "\n## %s\n\n| Mutant | Takes away | Killed by | s |\n|---|---|---|---|\n", head)
		}
		by, seconds := string(r.verdict), strconv.FormatFloat(r.took.Seconds(), 'f', 1, 64)
		switch {
		case r.before != nil:
			by, seconds = r.before.by, r.before.seconds
		case r.verdict == killed:
			by = fmt.Sprintf("%s: %s", r.packages(), cell(r.by()))
		}
		fmt.Fprintf(&b, "| [%s](%s.patch) | %s | %s | %s |\n", name, r.mutant.name, cell(r.mutant.removes), by, seconds)
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
