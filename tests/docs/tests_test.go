package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	declaredTest  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	mentionedTest = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	faultTable    = regexp.MustCompile(`(?s)<!-- faults:begin -->.*<!-- faults:end -->`)
)

// A test that is renamed must be renamed in the documents too. Documents use names as
// patterns of go test -run, so a name may be the beginning of several tests. The fault table
// is generated and may be older than a rename; CONTRIBUTING.md has names as bad examples.
func TestDocumentsMentionExistingTests(t *testing.T) {
	var tests []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range declaredTest.FindAllSubmatch(text, -1) {
			tests = append(tests, string(found[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mentioned := 0
	for name, text := range markdown(t) {
		if name == "CONTRIBUTING.md" {
			continue
		}
		for _, test := range mentionedTest.FindAllString(faultTable.ReplaceAllString(text, ""), -1) {
			mentioned++
			if !slices.ContainsFunc(tests, func(existing string) bool { return strings.HasPrefix(existing, test) }) {
				t.Errorf("%s mentions %s, which does not exist", name, test)
			}
		}
	}
	if mentioned < 50 {
		t.Errorf("found only %d tests in the documents", mentioned)
	}
}
