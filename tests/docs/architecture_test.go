package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fileTable = regexp.MustCompile("(?m)^### `([a-z/]+)`\n(?s:(.*?))(?:\n##|\\z)")
	quoted    = regexp.MustCompile("`([^`]+)`")
)

// The tables of files in ARCHITECTURE.md would become outdated with every file that is
// moved, so every folder and every file pattern in them must exist.
func TestArchitectureListsExistingFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	patterns := 0
	for rest := string(text); ; {
		table := fileTable.FindStringSubmatchIndex(rest)
		if table == nil {
			break
		}
		part, folders := rest[table[2]:table[3]], []string{""}
		for line := range strings.SplitSeq(rest[table[4]:table[5]], "\n") {
			cells := strings.Split(line, "|")
			if len(cells) != 5 {
				continue
			}
			if named := quoted.FindAllStringSubmatch(cells[1], -1); named != nil {
				folders = nil
				for _, folder := range named {
					folders = append(folders, folder[1])
				}
			}
			for _, pattern := range quoted.FindAllStringSubmatch(cells[2], -1) {
				for _, folder := range folders {
					patterns++
					files, err := filepath.Glob(filepath.Join(root, part, folder, pattern[1]))
					if err != nil || len(files) == 0 {
						t.Errorf("%s: %s/%s matches no file", part, folder, pattern[1])
					}
				}
			}
		}
		rest = rest[table[5]:]
	}
	if patterns < 50 {
		t.Errorf("found only %d file patterns in the tables of ARCHITECTURE.md", patterns)
	}
}
