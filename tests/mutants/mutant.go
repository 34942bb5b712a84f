package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// mutant is one member of an archive: a mistake and the tests that must notice it.
type mutant struct {
	name    string // archive/member
	removes string
	kills   []target
	changes []change
}

// target is one kills line: a package and the tests to run in it.
type target struct {
	flags []string // of go test
	pkg   string
	tests string // names of tests, or of subtests as Test/sub, separated by |
}

// exactly returns the pattern for -run. It excludes longer names that begin with a
// named test.
func (t target) exactly() string {
	var patterns []string
	for name := range strings.SplitSeq(t.tests, "|") {
		test, sub, _ := strings.Cut(name, "/")
		patterns = append(patterns, strings.TrimSuffix("^"+test+"$/"+sub, "/"))
	}
	return strings.Join(patterns, "|")
}

// readMutants reads the archives in a folder, in order of their names.
func readMutants(folder string) ([]*mutant, error) {
	archives, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var all []*mutant
	seen := map[string]bool{}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		for _, member := range archive.Files {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "/" + member.Name
			if seen[name] {
				return nil, fmt.Errorf("mutant %s: the name is used twice", name)
			}
			seen[name] = true
			m, err := parseMutant(name, string(member.Data))
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", name, err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// parseMutant parses one member of an archive. README.md describes the form.
func parseMutant(name, text string) (*mutant, error) {
	m := &mutant{name: name}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if file, ok := strings.CutPrefix(line, "--- "); ok {
			m.changes = append(m.changes, change{file: strings.TrimSpace(file), hunks: []hunk{nil}})
			continue
		}
		if len(m.changes) == 0 {
			if err := m.parseHeader(line); err != nil {
				return nil, err
			}
			continue
		}
		c := &m.changes[len(m.changes)-1]
		last := len(c.hunks) - 1
		switch {
		case line == "":
		case strings.HasPrefix(line, "@@"):
			c.hunks = append(c.hunks, nil)
		case strings.ContainsRune(" -+", rune(line[0])):
			c.hunks[last] = append(c.hunks[last], hunkLine{line[0], line[1:]})
		default:
			return nil, fmt.Errorf("line must begin with space, -, + or @@: %q", line)
		}
	}
	if m.removes == "" || len(m.kills) == 0 || len(m.changes) == 0 {
		return nil, fmt.Errorf("removes:, kills: or a changed file is missing")
	}
	for _, c := range m.changes {
		for _, h := range c.hunks {
			if !slices.ContainsFunc(h, func(l hunkLine) bool { return l.op != ' ' }) {
				return nil, fmt.Errorf("%s: a hunk changes nothing", c.file)
			}
		}
	}
	return m, nil
}

func (m *mutant) parseHeader(line string) error {
	if rest, ok := strings.CutPrefix(line, "removes: "); ok {
		m.removes = strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(line, "kills: "); ok {
		words := strings.Fields(rest)
		n := len(words)
		if n < 2 {
			return fmt.Errorf("kills: needs a package and tests: %q", line)
		}
		m.kills = append(m.kills, target{flags: words[:n-2], pkg: strings.TrimSuffix(words[n-2], "/"), tests: words[n-1]})
	} else if line != "" {
		return fmt.Errorf("unknown line before the first file: %q", line)
	}
	return nil
}

// checkRequired returns the number of mistakes in required.txt, which has lines of the
// form "mistake: mutant, mutant". A mutant that does not exist is an error.
func checkRequired(path string, all []*mutant) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	mistakes := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		mistake, names, _ := strings.Cut(line, ": ")
		for name := range strings.SplitSeq(names, ",") {
			name = strings.TrimSpace(name)
			if !slices.ContainsFunc(all, func(m *mutant) bool { return m.name == name }) {
				return 0, fmt.Errorf("required.txt: %s: mutant %q does not exist", mistake, name)
			}
		}
		mistakes++
	}
	return mistakes, nil
}
