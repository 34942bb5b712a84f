package arch

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Readers look for the package comment in doc.go, in the file named like the package, in
// main.go of a command, or in the only file.
func TestPackageCommentIsInOneKnownFile(t *testing.T) {
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
			case len(files) == 0, len(documented) == 1 && (len(files) == 1 || documented[0] == "doc.go" ||
				documented[0] == filepath.Base(folder)+".go" || tree == "cmd" && documented[0] == "main.go"):
			default:
				t.Errorf("%s: the package comment is in %v; it belongs in doc.go or %s.go", name, documented, filepath.Base(folder))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A doc.go lists the folders below its own in lines like "//   - name: purpose", after the
// line "// Folders:".
var (
	folderList = regexp.MustCompile(`(?m)^// Folders:\n//\n((?:// .*\n)+)`)
	folderLine = regexp.MustCompile(`(?m)^//   - ([a-z0-9/]+): `)
)

// Lists of folders in doc.go become outdated when folders are added or moved.
func TestFolderListsNameExistingFolders(t *testing.T) {
	var listed []string
	err := filepath.WalkDir("../..", func(file string, d os.DirEntry, err error) error {
		if err != nil || d.Name() != "doc.go" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		list := folderList.FindSubmatch(text)
		if list == nil {
			return nil
		}
		folder := filepath.Dir(file)
		var got []string
		for _, line := range folderLine.FindAllSubmatch(list[1], -1) {
			got = append(got, string(line[1]))
		}
		if want := packagesBelow(t, folder, ""); !slices.Equal(got, want) {
			t.Errorf("%s lists the folders %q, want %q", file, got, want)
		}
		listed = append(listed, strings.TrimPrefix(filepath.ToSlash(folder), "../../"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"domain", "application"} {
		if !slices.Contains(listed, folder) {
			t.Errorf("%s/doc.go has no list of its folders", folder)
		}
	}
}

// packagesBelow returns the nearest folders with Go files below folder in alphabetical order,
// relative to it. A folder without Go files, such as internal, is replaced by those below it.
func packagesBelow(t *testing.T, folder, prefix string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name, below := path.Join(prefix, e.Name()), filepath.Join(folder, e.Name())
		if files, _ := filepath.Glob(below + "/*.go"); len(files) > 0 {
			names = append(names, name)
		} else {
			names = append(names, packagesBelow(t, below, name)...)
		}
	}
	return names
}
