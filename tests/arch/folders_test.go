package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
