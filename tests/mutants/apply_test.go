package main

import (
	"strings"
	"testing"
)

// applyTo applies one change, written as in an archive, to a file.
func applyTo(t *testing.T, file, source, body string) (string, error) {
	t.Helper()
	m, err := parseMutant("x", "removes: x\nkills: ./a TestA\n--- "+file+"\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	return m.changes[0].apply(source)
}

func TestCommentsBlankLinesAndSpacingDoNotMatter(t *testing.T) {
	const body = " func f() {\n-\ta := g(\"http://x\") // old comment\n+\ta := 0\n \treturn\n"
	for name, c := range map[string]struct{ source, want string }{
		"the same comment": {
			"func f() {\n\ta := g(\"http://x\") // old comment\n\treturn\n}\n",
			"func f() {\n\ta := 0\n\treturn\n}\n",
		},
		"other comments": {
			"func f() { // new\n\n\t// new\n\ta  :=  g(\"http://x\")\n\t// after\n\treturn // new\n}\n",
			"func f() { // new\n\n\t// new\n\ta := 0\n\t// after\n\treturn // new\n}\n",
		},
		"a moved function": {
			"func g() {}\n\n// f is last.\nfunc f() {\n\ta := g(\"http://x\")\n\treturn\n}\n",
			"func g() {}\n\n// f is last.\nfunc f() {\n\ta := 0\n\treturn\n}\n",
		},
	} {
		if got, err := applyTo(t, "a.go", c.source, body); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestHunksApplyInAnyOrder(t *testing.T) {
	got, err := applyTo(t, "a.go", "a\nb\n// c\nd\n", "-d\n+e\n@@\n+first\n a\n@@\n b\n+c\n")
	if want := "first\na\nb\nc\n// c\ne\n"; err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestHunkMatchesExactlyOnce(t *testing.T) {
	const source = "func f() {\n\tif a {\n\t\treturn\n\t}\n\tif b {\n\t\treturn\n\t}\n}\n"
	for body, want := range map[string]string{
		"-\t\treturn\n \t}\n":          "ambiguous: add context (2 matches)",
		"+\tx()\n":                     "ambiguous: add context",
		" \tif c {\n-\t\treturn\n":     `no match: line 1 of the old side, "if c {"`,
		" \tif b {\n-\t\treturn nil\n": `no match: line 2 of the old side, "return nil"`,
		"-\t\treturn\n \t}\n \tif b {\n@@\n \tif a {\n-\t\treturn\n": "hunk 2: removes a line that an earlier hunk removes",
	} {
		if got, err := applyTo(t, "a.go", source, body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q\n%s", body, err, want, got)
		}
	}
}

func TestDirectivesAndStringsAreCode(t *testing.T) {
	for _, c := range [][3]string{
		{"//go:build linux\n\npackage a\n", "-//go:build linux\n package a\n", "\npackage a\n"},
		{"a(\"x // 1\")\na(\"x // 2\")\n", "-a(\"x // 2\")\n", "a(\"x // 1\")\n"},
		{"a('\"') // 1\nb(`\\`) // 2\n", "-a('\"')\n b(`\\`)\n", "b(`\\`) // 2\n"},
	} {
		if got, err := applyTo(t, "a.go", c[0], c[1]); err != nil || got != c[2] {
			t.Errorf("%q: %v, %q", c[1], err, got)
		}
	}
}

func TestOtherFilesMatchExactly(t *testing.T) {
	if _, err := applyTo(t, "a.sql", "a  b\n", "-a b\n"); err == nil {
		t.Error("spacing is ignored")
	}
	if got, err := applyTo(t, "a.sql", "// a\n// b\n", "-// b\n+// c\n"); err != nil || got != "// a\n// c\n" {
		t.Errorf("%v, %q", err, got)
	}
}

func TestMutantCreatesFile(t *testing.T) {
	if got, err := applyTo(t, "new.go", "", "+package a\n+\n+var x int\n"); err != nil || got != "package a\n\nvar x int\n" {
		t.Errorf("%v, %q", err, got)
	}
	if _, err := applyTo(t, "new.go", "", " package a\n+var x int\n"); err == nil {
		t.Error("a hunk with context applies to a file that does not exist")
	}
}
