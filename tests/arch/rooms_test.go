package arch

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// room is a layer of a package: a group of its files.
type room struct {
	name  string
	files []string
}

// rooms lists the layers of package changefeed, from the top. A file may use declarations
// of its own layer and of those below. They are one package, because separate packages
// would split its documentation (DECISIONS 35).
var rooms = []room{
	{"process", []string{"processor", "run", "cycle", "listing", "membership", "presence", "initialize", "repair", "drain", "vacancies", "operator", "operator_status"}},
	{"worker", []string{"workers", "worker", "release", "own"}},
	{"delivery", []string{"reader", "flow", "window", "held", "retry", "ahead", "delivery", "health", "lag", "silence"}},
	{"ownership", []string{"keeper", "keeper_change", "reconcile", "fence", "split"}},
	{"plan", []string{"balancer", "tiling", "lease", "lease_document", "lease_members", "lease_ahead", "term"}},
	{"contract", []string{
		"doc", "env", "options", "start", "handler", "answer", "observer", "feed", "errors", "clock", "feedrange", "ids", "log", "deadline", "siblings",
	}},
}

// wiringRooms lists the layers of package wiring, from the top.
var wiringRooms = []room{
	{"modules", []string{"page", "api", "relay", "push", "operator"}},
	{"kinds", []string{"store", "store_cosmos", "store_postgres", "store_firestore", "broker", "broker_rabbitmq", "broker_sqs"}},
	{"clients", []string{"clients"}},
	{"process", []string{"process", "params"}},
	{"life", []string{"doc", "lifecycle", "stops", "signals"}},
}

func TestArrowsBetweenRoomsPointDown(t *testing.T) {
	for folder, rooms := range map[string][]room{
		"changefeed": rooms, "infrastructure/wiring": wiringRooms, "infrastructure/emulator/cosmosemu": cosmosemuRooms,
		"infrastructure/emulator/busemu": busemuRooms, "infrastructure/emulator/busemu/internal/broker": brokerRooms,
	} {
		level := map[string]int{}
		for i, room := range rooms {
			for _, file := range room.files {
				level[file] = i
			}
		}
		p := check(t, folder)
		for _, file := range p.files {
			if name := base(p.fset.Position(file.Pos()).Filename); !slices.ContainsFunc(rooms, func(r room) bool { return slices.Contains(r.files, name) }) {
				t.Errorf("%s/%s.go is in no room", folder, name)
			}
		}
		for ident, object := range p.info.Uses {
			if object.Pkg() != p.pkg || !object.Pos().IsValid() {
				continue
			}
			from, to := base(p.fset.Position(ident.Pos()).Filename), base(p.fset.Position(object.Pos()).Filename)
			if level[to] < level[from] {
				t.Errorf("%s, room %s: %s is declared in %s.go, in the room %s above",
					p.fset.Position(ident.Pos()), rooms[level[from]].name, ident.Name, to, rooms[level[to]].name)
			}
		}
	}
}

// Conditions in package wiring depend on configuration, errors and nil checks only, never on
// values of the domain, the application or the change feed.
func TestWiringDecidesNothing(t *testing.T) {
	p := check(t, "infrastructure/wiring")
	business := func(e ast.Expr) bool {
		if binary, ok := e.(*ast.BinaryExpr); ok && (binary.Op == token.LAND || binary.Op == token.LOR) {
			return false // its operands are checked
		}
		of := p.info.TypeOf(e)
		if pointer, ok := of.(*types.Pointer); ok {
			of = pointer.Elem()
		}
		named, ok := of.(*types.Named)
		return ok && named.Obj().Pkg() != nil && under(named.Obj().Pkg().Path(), "domain", "application", "changefeed")
	}
	look := func(conditions ...ast.Expr) {
		for _, condition := range conditions {
			if condition == nil {
				continue
			}
			ast.Inspect(condition, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok && business(e) {
					t.Errorf("%s: a decision by %s", p.fset.Position(e.Pos()), p.info.TypeOf(e))
				}
				return true
			})
		}
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.IfStmt:
				look(s.Cond)
			case *ast.SwitchStmt:
				look(s.Tag)
			case *ast.CaseClause:
				look(s.List...)
			}
			return true
		})
	}
}

// checked is a type-checked package.
type checked struct {
	fset  *token.FileSet
	files []*ast.File
	pkg   *types.Package
	info  types.Info
}

// check type-checks the package in folder without its tests.
func check(t *testing.T, folder string) checked {
	t.Helper()
	p := checked{fset: token.NewFileSet(), info: types.Info{
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}}
	paths, err := filepath.Glob("../../" + folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file)
	}
	p.pkg, err = (&types.Config{Importer: compiled(t, p.fset, folder)}).Check(module+"/"+folder, p.fset, p.files, &p.info)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func base(path string) string { return strings.TrimSuffix(filepath.Base(path), ".go") }

// compiled returns an importer of the export data in the build cache.
func compiled(t *testing.T, fset *token.FileSet, folder string) types.Importer {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./"+folder)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	exports := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}
