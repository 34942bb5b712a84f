// Package fuzzseed adds the committed seeds of fuzz targets. The seeds of a package are members
// of one archive, testdata/seeds.txtar, because 175 files of one line each hid the others. A
// member is named TARGET/NAME and has the form of Go's own corpus files, so a crasher that
// go test -fuzz writes to testdata/fuzz is moved into the archive as it is.
package fuzzseed

import (
	"fmt"
	"go/ast"
	"go/parser"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// header is the first line of a corpus file (package internal/fuzz of Go).
const header = "go test fuzz v1\n"

// Add adds the seeds of the running target. It fails the target if there are none or one of
// them cannot be read.
func Add(f *testing.F) {
	f.Helper()
	archive, err := txtar.ParseFile("testdata/seeds.txtar")
	if err != nil {
		f.Fatal(err)
	}
	added := 0
	for _, member := range archive.Files {
		if target, _, _ := strings.Cut(member.Name, "/"); target != f.Name() {
			continue
		}
		values, err := parse(string(member.Data))
		if err != nil {
			f.Fatalf("testdata/seeds.txtar: %s: %v", member.Name, err)
		}
		f.Add(values...)
		added++
	}
	if added == 0 {
		f.Fatalf("testdata/seeds.txtar has no seed of %s", f.Name())
	}
}

// parse reads a corpus file: the header, then one conversion of a literal per line.
func parse(text string) (values []any, err error) {
	body, ok := strings.CutPrefix(text, header)
	if !ok {
		return nil, fmt.Errorf("want the first line %q", header)
	}
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		value, err := parseValue(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		values = append(values, value)
	}
	return values, nil
}

func parseValue(line string) (any, error) {
	expression, err := parser.ParseExpr(line)
	if err != nil {
		return nil, err
	}
	call, ok := expression.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil, fmt.Errorf("want a conversion of a literal")
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return nil, fmt.Errorf("want a literal in the conversion")
	}
	if _, ok := call.Fun.(*ast.ArrayType); ok {
		s, err := strconv.Unquote(literal.Value)
		return []byte(s), err
	}
	switch name, _ := call.Fun.(*ast.Ident); {
	case name == nil:
	case name.Name == "string":
		return strconv.Unquote(literal.Value)
	case name.Name == "byte":
		c, _, _, err := strconv.UnquoteChar(literal.Value[1:len(literal.Value)-1], '\'')
		return byte(c), err
	case name.Name == "uint16":
		n, err := strconv.ParseUint(literal.Value, 0, 16)
		return uint16(n), err
	case name.Name == "uint32":
		n, err := strconv.ParseUint(literal.Value, 0, 32)
		return uint32(n), err
	}
	return nil, fmt.Errorf("no seed has had this type yet; add it to package fuzzseed")
}
