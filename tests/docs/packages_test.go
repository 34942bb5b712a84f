package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// longest is the maximum number of lines of the README. Details belong beside the code,
// with a link.
const longest = 150

// imported matches the packages that the README offers to other modules.
var imported = regexp.MustCompile("(?m)^### `([a-z/]+)`")

// The README is short, and each package that it offers has its own README and examples
// with output.
func TestOfferedPackagesHaveDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > longest {
		t.Errorf("README.md has %d lines, more than %d", lines, longest)
	}
	packages := imported.FindAllSubmatch(text, -1)
	if len(packages) < 4 {
		t.Errorf("README.md offers only %d packages", len(packages))
	}
	for _, p := range packages {
		dir := string(p[1])
		if !bytes.Contains(text, []byte("]("+dir+"/README.md)")) {
			t.Errorf("README.md does not link to %s/README.md", dir)
		}
		readme, err := os.ReadFile(filepath.Join(root, dir, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Contains(readme, []byte("```go\n")) {
			t.Errorf("%s/README.md shows no program", dir)
		}
		if n := examples(t, filepath.Join(root, dir)); n < 3 {
			t.Errorf("%s has %d examples that are run, want 3 or more", dir, n)
		}
	}
}

// examples counts the examples of a package that have an output comment, because go test
// does not run the others.
func examples(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*example*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for function := range strings.SplitSeq(string(text), "\nfunc ") {
			if strings.HasPrefix(function, "Example") && regexp.MustCompile(`(?m)^\s+// (Unordered o|O)utput:`).MatchString(function) {
				n++
			}
		}
	}
	return n
}
