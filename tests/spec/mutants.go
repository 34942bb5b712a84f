package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// mutant is a change of a module that must violate a rule. mutants.txt has all of them.
type mutant struct {
	name     string
	model    string // the configuration that must fail
	expect   string // the rule
	replaced [][2]string
}

// readMutants reads blocks of lines: "== name", "config: ...", "violates: ...", and pairs of
// a "-" line with the text to replace and a "+" line with the new text. Other lines explain.
func readMutants(file string) (mutants []mutant, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m *mutant
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		name, begins := strings.CutPrefix(line, "== ")
		switch {
		case begins:
			mutants = append(mutants, mutant{name: name})
			m = &mutants[len(mutants)-1]
		case m == nil:
		case strings.HasPrefix(line, "config: "):
			m.model = line[len("config: "):]
		case strings.HasPrefix(line, "violates: "):
			m.expect = line[len("violates: "):]
		case strings.HasPrefix(line, "-"):
			m.replaced = append(m.replaced, [2]string{line[1:]})
		case strings.HasPrefix(line, "+") && len(m.replaced) > 0:
			m.replaced[len(m.replaced)-1][1] = line[1:]
		}
	}
	return mutants, nil
}

func (m *mutant) check(sources map[string]string) (c check, err error) {
	i := slices.IndexFunc(models, func(o model) bool { return o.name == m.model })
	if i < 0 || m.expect == "" || len(m.replaced) == 0 {
		return c, fmt.Errorf("mutant %s: it needs a known config, a rule and a change", m.name)
	}
	c = check{name: "mutant " + m.name, model: models[i], source: sources[models[i].module], expect: m.expect}
	for _, change := range m.replaced {
		if n := strings.Count(c.source, change[0]); n != 1 {
			return c, fmt.Errorf("mutant %s: %q is %d times in %s.tla, want once", m.name, change[0], n, models[i].module)
		}
		c.source = strings.Replace(c.source, change[0], change[1], 1)
	}
	return c, nil
}
