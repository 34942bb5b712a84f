package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// generic lists packages for aggregates of any kind. Only their tests and examples may
// mention contacts.
var generic = []string{
	"domain/aggregate", "domain/event", "domain/fault",
	"application/command", "application/query", "application/relay", "application/mediator", "changefeed", "changefeed/cosmosfeed",
	"infrastructure/store/cosmos", "infrastructure/store/document", "infrastructure/store/unitofwork", "infrastructure/store/recordstore", "infrastructure/store/recordstore/parked", "infrastructure/store/postgres", "infrastructure/store/firestore", "infrastructure/store/internal/jsontext", "infrastructure/store/cosmos/internal/store", "infrastructure/store/cosmos/parked",
	"infrastructure/page", "infrastructure/lab/verify", "infrastructure/consumer", "infrastructure/consumer/cosmosinbox", "infrastructure/consumer/postgresinbox", "infrastructure/consumer/firestoreinbox",
	"infrastructure/consumer/cloudevents", "infrastructure/consumer/handling", "infrastructure/consumer/push", "infrastructure/broker/internal/publish", "infrastructure/broker/internal/shared", "infrastructure/broker/servicebus/subscriber", "infrastructure/broker/rabbitmq", "infrastructure/broker/sqs",
	"infrastructure/broker/servicebus", "infrastructure/broker/servicebus/internal/wire", "infrastructure/relay/relayfeed", "infrastructure/relay/relayservice", "infrastructure/relay/relayport", "infrastructure/store/cosmos/cosmosrelay", "infrastructure/relay/monitor",
	"infrastructure/httpapi", "infrastructure/httpapi/auth", "infrastructure/httpapi/internal/strictjson",
}

func TestGenericPackagesKnowNoContacts(t *testing.T) {
	t.Parallel()
	for _, path := range generic {
		files, err := filepath.Glob(filepath.Join("../..", path, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", path, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") && bytes.Contains(bytes.ToLower(text), []byte("contact")) {
				t.Errorf("%s/%s mentions contacts", path, filepath.Base(file))
			}
		}
	}
}

// maxMethods bounds the methods of one type. A type with more has several tasks, and its
// fields several owners: take out a type that owns some of them.
const maxMethods = 40

func TestEmulatorTypesHaveFewMethods(t *testing.T) {
	methods := map[string]int{} // by folder and type
	const root = "../../infrastructure/emulator/"
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if generic, ok := receiver.(*ast.IndexExpr); ok {
				receiver = generic.X
			}
			if name, ok := receiver.(*ast.Ident); ok {
				methods[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), root)+"."+name.Name]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(methods) == 0 {
		t.Fatal("no methods found")
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, more than %d", name, n, maxMethods)
		}
	}
}
