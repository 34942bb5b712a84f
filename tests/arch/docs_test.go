package arch

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Readers look for the package comment in doc.go, in main.go of a command, or in the only
// file of the package.
func TestPackageCommentIsInDocGo(t *testing.T) {
	for _, tree := range []string{"domain", "application", "changefeed", "infrastructure", "cmd"} {
		err := filepath.WalkDir("../../"+tree, func(folder string, d os.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			all, err := filepath.Glob(folder + "/*.go")
			if err != nil {
				return err
			}
			var files, documented []string
			for _, path := range all {
				if strings.HasSuffix(path, "_test.go") {
					continue
				}
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
				if err != nil {
					return err
				}
				files = append(files, filepath.Base(path))
				if file.Doc != nil {
					documented = append(documented, filepath.Base(path))
				}
			}
			name := strings.TrimPrefix(folder, "../../")
			switch {
			case len(files) == 0, len(documented) == 1 && (len(files) == 1 || documented[0] == "doc.go" || tree == "cmd" && documented[0] == "main.go"):
			default:
				t.Errorf("%s: the package comment is in %v instead of doc.go only", name, documented)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
