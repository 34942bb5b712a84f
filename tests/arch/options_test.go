package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// importable lists the packages for other modules.
var importable = []string{"changefeed", "infrastructure/emulator/cosmosemu", "infrastructure/emulator/busemu", "infrastructure/broker/servicebus/subscriber", "infrastructure/consumer", "infrastructure/lab/feedboxtest"}

// An option that no test and no example sets is untested. Options are the exported fields
// of structs whose name ends in Options, in importable packages. A field in a literal
// counts for its type, an assignment for every option of that name.
func TestEveryOptionIsSetByATest(t *testing.T) {
	declared := map[string]token.Position{} // package.Type.Field
	set := map[string]bool{}                // the same, or Field alone
	fset := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		own := strings.TrimSuffix(file.Name.Name, "_test")
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../../tests/") {
			noteSet(file, own, set)
		} else if !strings.Contains(path, "/internal/") && under(module+"/"+filepath.Dir(strings.TrimPrefix(path, "../../")), importable...) {
			noteOptions(fset, file, declared)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(declared) < 40 {
		t.Fatalf("only %d options found", len(declared))
	}
	for option, at := range declared {
		field := option[strings.LastIndex(option, ".")+1:]
		if !set[option] && !set[field] {
			t.Errorf("%s: no test and no example sets %s", at, option)
		}
	}
}

func noteOptions(fset *token.FileSet, file *ast.File, into map[string]token.Position) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			named, ok := spec.(*ast.TypeSpec)
			if !ok || !named.Name.IsExported() || !strings.HasSuffix(named.Name.Name, "Options") {
				continue
			}
			options, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range options.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						into[file.Name.Name+"."+named.Name.Name+"."+name.Name] = fset.Position(name.Pos())
					}
				}
			}
		}
	}
}

func noteSet(file *ast.File, own string, set map[string]bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			var of string
			switch typ := n.Type.(type) {
			case *ast.Ident:
				of = own + "." + typ.Name
			case *ast.SelectorExpr:
				if in, ok := typ.X.(*ast.Ident); ok {
					of = in.Name + "." + typ.Sel.Name
				}
			}
			for _, element := range n.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok {
						set[of+"."+key.Name] = true
					}
				}
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if to, ok := left.(*ast.SelectorExpr); ok {
					set[to.Sel.Name] = true
				}
			}
		}
		return true
	})
}
