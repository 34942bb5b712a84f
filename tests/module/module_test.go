package main

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var build = flag.Bool("build", false, "also vet all of the copy, and run some of its tests; takes minutes")

const (
	root    = "../.."
	another = "example.org/another/feedbox"
)

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatIsThePathAndWhatIsNot(t *testing.T) {
	files := map[string][2]string{ // before, after
		"go.mod":            {"module acme\n\ngo 1.26\n", "module " + another + "\n\ngo 1.26\n"},
		"domain/contact.go": {"import \"acme/domain/fault\"\n", "import \"" + another + "/domain/fault\"\n"},
		"a.go":              {"import (\n\t\"acme\"\n\tbox \"acme\"\n)\nvar x = []string{\n\t\"acme\",\n\ty + \"acme\"}\n", "import (\n\t\"" + another + "\"\n\tbox \"" + another + "\"\n)\nvar x = []string{\n\t\"acme\",\n\ty + \"acme\"}\n"},
		"README.md":         {"`acme/domain`; acme/domain/x", "`" + another + "/domain`; " + another + "/domain/x"},
		"Makefile":          {"grep -vE '^acme/tests/(api)$$'", "grep -vE '^" + another + "/tests/(api)$$'"},
		"tests/a.patch":     {"-\t\"acme/tests\"\n \t\"acme/domain\"\n", "-\t\"" + another + "/tests\"\n \t\"" + another + "/domain\"\n"},
		"tests/same.txt": {
			"cmd/acme/domain bin/acme .acme/domain registry.example/acme/domain acme/relay acme/domains my-acme/domain acme api",
			"cmd/acme/domain bin/acme .acme/domain registry.example/acme/domain acme/relay acme/domains my-acme/domain acme api",
		},
		"tests/binary": {"\x00 acme/domain", "\x00 acme/domain"},
		".cache/x.go":  {"\"acme/domain\"", "\"acme/domain\""},
		"tests/adopter/go.mod": {
			"require (\n\tacme v0.0.0\n)\n\nreplace acme => ../..\n",
			"require (\n\t" + another + " v0.0.0\n)\n\nreplace " + another + " => ../..\n",
		},
		".golangci.yml":   {"{local-prefixes: [acme]} {module-path: acme}", "{local-prefixes: [" + another + "]} {module-path: " + another + "}"},
		"tests/arch/a.go": {"acme", "acme"},
	}
	before := map[string]string{}
	for name, texts := range files {
		before[name] = texts[0]
	}
	dir := tree(t, before)
	if _, err := rewrite(dir, another); err != nil {
		t.Fatal(err)
	}
	for name, texts := range files {
		if got := read(t, filepath.Join(dir, name)); got != texts[1] {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, texts[1])
		}
	}
	if n, err := rewrite(dir, another); n != 0 || err != nil {
		t.Errorf("a second time changes %d files, %v", n, err)
	}
	if n, err := rewrite(dir, "example.org/x"); n != len(files)-4 || err != nil {
		t.Errorf("another path changes %d files, %v", n, err)
	}
	if strings.Contains(read(t, filepath.Join(dir, "Makefile")), another) {
		t.Error("the Makefile has the path before")
	}
}

func TestWhatIsRefused(t *testing.T) {
	for _, to := range []string{"", "acme", "github.com", "https://github.com/you/acme", "github.com/you/ac me", "github.com/"} {
		if _, err := rewrite(tree(t, map[string]string{"go.mod": "module acme\n", "domain/a.go": ""}), to); err == nil {
			t.Errorf("%q is taken for a module path", to)
		}
	}
	dir := tree(t, map[string]string{"go.mod": "module acme\n", "domain/a.go": "", ".golangci.yml": "module-path: acme}"})
	if _, err := rewrite(dir, another); err == nil || !strings.Contains(err.Error(), "local-prefixes") {
		t.Errorf("a file without its mark: %v", err)
	}
}

// A copy of the repository with another path contains no old path, and every import
// resolves.
func TestACopyUnderAnotherPath(t *testing.T) {
	dir := t.TempDir()
	names := copyTree(t, dir)
	old, folders, err := survey(dir)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := rewrite(dir, another)
	if err != nil || changed < 500 {
		t.Fatalf("%d files were changed: %v", changed, err)
	}
	for _, name := range names {
		if found := leftover(read(t, filepath.Join(dir, name)), old, folders); found != "" {
			t.Errorf("%s still has %q", name, found)
		}
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// go list resolves every import, including those of tests. Only domain is compiled, to save time.
	if out := run("list", "-test", "-tags", "conformance faults failpoint", "-f", "{{.ImportPath}}", "./..."); strings.Contains("\n"+out, "\n"+old+"/") {
		t.Errorf("a package has the old path:\n%s", out)
	}
	run("list", "-C", filepath.Join("tests", "adopter"), "-deps", "-test", "./...") // a separate module, which requires this one
	run("vet", "-trimpath", "./domain/...", "./application/mediator/...")
	if *build {
		run("vet", "-trimpath", "./...") // compiles what go build would
		run("test", "-trimpath", "-run", "^(Test|Example)", "./domain/...", "./application/...", "./infrastructure/process/config", "./tests/arch", "./tests/docs")
	}
}

// leftover returns the first full path of a package of the old module in text, or "". It
// uses another method than the program, so that it does not repeat its mistakes.
func leftover(text, old string, folders []string) string {
	for _, folder := range folders {
		path := old + "/" + folder
		for rest, at := text, strings.Index(text, path); at >= 0; at = strings.Index(rest, path) {
			before, after := rest[:at], rest[at+len(path):]
			inPath := before != "" && strings.ContainsAny(before[len(before)-1:], "/.-_@abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
			longer := after != "" && strings.ContainsAny(after[:1], "_abcdefghijklmnopqrstuvwxyz0123456789")
			if !inPath && !longer && !strings.Contains(before, "\x00") {
				return path
			}
			rest = after
		}
	}
	return ""
}

// copyTree copies the repository into dir and returns the names of its files.
func copyTree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o755)
		case !d.Type().IsRegular() || name == ".git": // in a work tree .git is a file
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names = append(names, name)
		return os.WriteFile(filepath.Join(dir, name), text, 0o700)
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
