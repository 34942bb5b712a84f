package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one patch.
type mutant struct {
	name    string // directory/name without .patch
	path    string
	removes string
	kills   []target
	files   []string // it changes, from the module's root
}

// target is one kills line: a package and the tests to run in it.
type target struct {
	flags []string // of go test
	pkg   string
	tests string // names of tests, or of subtests as Test/sub, divided by |
}

// exactly is the tests for -run: no other test whose name begins with one of them.
func (t target) exactly() string {
	var patterns []string
	for name := range strings.SplitSeq(t.tests, "|") {
		test, sub, _ := strings.Cut(name, "/")
		patterns = append(patterns, strings.TrimSuffix("^"+test+"$/"+sub, "/"))
	}
	return strings.Join(patterns, "|")
}

// readMutants reads every patch below home, in order of their names.
func readMutants(home string) ([]*mutant, error) {
	var all []*mutant
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".patch" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(home, path)
		if err != nil {
			return err
		}
		m, err := parseMutant(strings.TrimSuffix(filepath.ToSlash(name), ".patch"), text)
		if err != nil {
			return err
		}
		m.path = path
		all = append(all, m)
		return nil
	})
	return all, err
}

// parseMutant reads the lines above the diff and the names of the files it changes.
func parseMutant(name string, text []byte) (*mutant, error) {
	m := &mutant{name: name}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "removes: "); ok && len(m.files) == 0 {
			m.removes = strings.TrimSpace(rest)
		}
		if rest, ok := strings.CutPrefix(line, "kills: "); ok && len(m.files) == 0 {
			words := strings.Fields(rest)
			if len(words) < 2 {
				return nil, fmt.Errorf("mutant %s: a kills line wants a package and tests: %q", name, line)
			}
			n := len(words)
			m.kills = append(m.kills, target{flags: words[:n-2], pkg: strings.TrimSuffix(words[n-2], "/"), tests: words[n-1]})
		}
		if rest, ok := strings.CutPrefix(line, "+++ b/"); ok {
			m.files = append(m.files, rest)
		}
	}
	if m.removes == "" || len(m.kills) == 0 || len(m.files) == 0 {
		return nil, fmt.Errorf("mutant %s: wants the lines removes: and kills: above a diff", name)
	}
	return m, lines.Err()
}

// requirement is a mistake that must have a mutant, and the mutants it has.
type requirement struct {
	mistake string
	mutants []string
}

// readRequired reads lines of the form "mistake: mutant, mutant".
func readRequired(path string, all []*mutant) ([]requirement, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []requirement
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		mistake, names, _ := strings.Cut(line, ": ")
		r := requirement{mistake: mistake}
		for name := range strings.SplitSeq(names, ",") {
			name = strings.TrimSpace(name)
			if !slices.ContainsFunc(all, func(m *mutant) bool { return m.name == name }) {
				return nil, fmt.Errorf("required.txt: %s: no mutant %q", mistake, name)
			}
			r.mutants = append(r.mutants, name)
		}
		list = append(list, r)
	}
	return list, nil
}
