package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// alone lists the places that name the module without a package: the file and the text
// before and after the name.
var alone = []struct{ file, before, behind string }{
	{"go.mod", "module ", "\n"},
	{"tests/adopter/go.mod", "\t", " v0.0.0"},
	{"tests/adopter/go.mod", "replace ", " => ../..\n"},
	{".golangci.yml", "local-prefixes: [", "]"},
	{".golangci.yml", "module-path: ", "}"},
	{"tests/arch/arch_test.go", `const module = "`, `"`},
}

// skipped lists folders without files of the module.
var skipped = []string{".git", ".cache", ".feedbox", "bin", "node_modules"}

// valid matches paths that go get can fetch: a host and a path.
var valid = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$`)

// rewrite changes the module path below dir to the given one and returns the number of
// changed files.
func rewrite(dir, to string) (changed int, err error) {
	if !valid.MatchString(to) {
		return 0, fmt.Errorf("%q is no path that go get can fetch, such as github.com/you/feedbox", to)
	}
	from, folders, err := survey(dir)
	if err != nil || from == to {
		return 0, err
	}
	packages := inside(from, folders)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text, 0) >= 0 { // not a text
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		after, err := edit(filepath.ToSlash(name), text, from, to, packages)
		if err != nil || bytes.Equal(after, text) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		changed++
		return os.WriteFile(path, after, info.Mode().Perm())
	})
	return changed, err
}

// edit returns the text of a file with the new path.
func edit(name string, text []byte, from, to string, packages *regexp.Regexp) ([]byte, error) {
	after := packages.ReplaceAll(text, []byte("${1}"+to+"${2}"))
	if ext := filepath.Ext(name); ext == ".go" || ext == ".md" || ext == ".txtar" {
		after = importOf(from).ReplaceAll(after, []byte("${1}"+to+"${2}"))
	}
	for _, a := range alone {
		if a.file != name {
			continue
		}
		was := a.before + from + a.behind
		if !bytes.Contains(after, []byte(was)) {
			return nil, fmt.Errorf("%s does not have %q", name, was)
		}
		after = bytes.ReplaceAll(after, []byte(was), []byte(a.before+to+a.behind))
	}
	return after, nil
}

// inside returns an expression for the full path of a package in one of the folders. Its
// groups are the text before the path and the folder.
func inside(from string, folders []string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(^|[^A-Za-z0-9_./@-])` + regexp.QuoteMeta(from) + `(/(?:` + strings.Join(folders, "|") + `)\b)`)
}

// importOf returns an expression for the import of the root package. It is alone in its line, and gofmt
// puts a comma after any other text there.
func importOf(from string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^((?:import )?[ \t]*(?:[a-z]+ )?")` + regexp.QuoteMeta(from) + `("[ \t]*)$`)
}

// survey returns the module's path and the folders of its root that contain Go code.
func survey(dir string) (module string, folders []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", nil, err
	}
	found := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(text)
	if found == nil {
		return "", nil, errors.New("go.mod names no module")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(skipped, e.Name()) {
			folders = append(folders, regexp.QuoteMeta(e.Name()))
		}
	}
	if len(folders) == 0 {
		return "", nil, errors.New("there is no folder with packages")
	}
	return string(found[1]), folders, nil
}
