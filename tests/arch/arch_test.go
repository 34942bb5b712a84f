// Package arch tests the rules of the source tree: which package may import which, where
// package comments are, and how comments are written. .golangci.yml has the import rules
// for editors.
package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "feedbox"

// rule lists the import path prefixes that the packages at and below path may import besides
// that folder itself and the standard library. The rule with the longest path governs a
// package, so a folder below another one can be stricter or wider without an exception. A prefix
// that ends with $ is a whole path.
type rule struct {
	path  string
	allow []string
}

const (
	domain      = "feedbox/domain"
	application = "feedbox/application"
	changefeed  = "feedbox/changefeed"
	infra       = "feedbox/infrastructure/"
	azure       = "github.com/Azure/azure-sdk-for-go/sdk/"
	uuid        = "github.com/google/uuid"
	otel        = "go.opentelemetry.io/otel"
	firestore   = "cloud.google.com/go/firestore"
)

// kit lists the common packages of the brokers' consumer kits and publishers.
var kit = []string{infra + "consumer", infra + "consumer/cloudevents", infra + "consumer/handling", infra + "broker/internal/"}

var rules = []rule{
	{"domain", []string{uuid}},
	{"application", []string{domain, uuid}},
	{"changefeed", []string{"golang.org/x/sync/errgroup"}},
	{"changefeed/cosmosfeed", []string{changefeed, azure, "golang.org/x/sync", "github.com/twmb/murmur3"}},

	{"infrastructure/httpapi", []string{domain, application, uuid, otel, "github.com/coreos/go-oidc", "github.com/swaggest/swgui", "golang.org/x/"}},

	// A store imports what all stores share, never another store.
	{"infrastructure/store", []string{domain, application, changefeed, uuid}},
	{"infrastructure/store/cosmos", []string{domain, application, changefeed + "/cosmosfeed", infra + "process/azure", infra + "store/document", infra + "store/internal/", infra + "store/unitofwork", azure, uuid}},
	{"infrastructure/store/cosmos/cosmosrelay", []string{changefeed, infra + "relay/relayport", infra + "store/cosmos", infra + "store/document", azure}},
	{"infrastructure/store/postgres", records("github.com/jackc/pgx/v5")},
	{"infrastructure/store/firestore", records(firestore, "google.golang.org/")},
	doctor("store/cosmos", domain, infra+"process/azure", infra+"store/document", azure, uuid),
	doctor("store/postgres"),
	doctor("store/firestore"),

	// A broker imports what all brokers share, never another broker.
	{"infrastructure/broker/internal", []string{application, infra + "consumer"}},
	broker("servicebus", azure, otel, "github.com/Azure/go-amqp"),
	broker("rabbitmq", "github.com/rabbitmq/amqp091-go"),
	broker("sqs", "github.com/aws/", "golang.org/x/sync/semaphore"),
	doctor("broker/servicebus", application, infra+"process/azure", azure),
	doctor("broker/rabbitmq", application),
	doctor("broker/sqs", application, "github.com/aws/"),

	{"infrastructure/consumer", []string{application, otel}},
	{"infrastructure/consumer/cosmosinbox", []string{infra + "consumer", azure}},
	{"infrastructure/consumer/postgresinbox", []string{infra + "consumer", "github.com/jackc/pgx/v5"}},
	{"infrastructure/consumer/firestoreinbox", []string{infra + "consumer", firestore, "google.golang.org/grpc"}},

	{"infrastructure/relay", []string{domain, application, changefeed, otel}},
	{"infrastructure/operator", []string{domain, application, changefeed, infra + "process/config", infra + "relay/relayport"}},
	{"infrastructure/operator/plan", nil},
	{"infrastructure/page", []string{domain, infra + "httpapi/auth", infra + "httpapi/hostguard", infra + "httpapi/limit"}},
	{"infrastructure/page/operations", []string{domain, application, changefeed, infra + "operator", infra + "page", "golang.org/x/sync/errgroup", "github.com/prometheus/"}},

	{"infrastructure/process/azure", []string{azure}},
	{"infrastructure/process/config", []string{"github.com/caarlos0/env"}},
	{"infrastructure/process/console", []string{"github.com/schollz/progressbar", "github.com/spf13/cobra", "golang.org/x/term"}},
	{"infrastructure/process/failpoint", nil},
	{"infrastructure/process/telemetry", []string{azure, otel, "github.com/lmittmann/tint", "github.com/prometheus/"}},

	{"infrastructure/emulator", nil},
	{"infrastructure/emulator/internal/disk", []string{"github.com/cockroachdb/pebble/v2"}},
	emulator("cosmosemu", azure+"data/azcosmos", azure+"azcore"),
	emulator("busemu", azure+"messaging/azservicebus", azure+"azcore", "github.com/coder/websocket"),

	{"infrastructure/lab", []string{changefeed, infra + "emulator/", infra + "page", azure, "github.com/Azure/go-amqp"}},
	{"infrastructure/lab/feedboxtest", []string{module + "$", infra + "emulator/", azure}}, // with the names of an adopter

	{"infrastructure/wiring", []string{module + "/", "github.com/", uuid, otel, "go.uber.org/", "golang.org/x/sync/errgroup"}},
	{"cmd", []string{module + "/", "github.com/", "golang.org/x/", "go.uber.org/fx", "google.golang.org/", "cloud.google.com/"}},
}

// records is the rule of a store on package recordstore.
func records(driver ...string) []string {
	return append(driver, domain, application, changefeed, infra+"relay/relayport", infra+"store/document", infra+"store/recordstore", uuid)
}

func broker(name string, client ...string) rule {
	return rule{"infrastructure/broker/" + name, slices.Concat(client, kit, []string{application, infra + "process/failpoint", infra + "relay/relayport"})}
}

// doctor is the rule of the examinations of one external system: they may import the adapter
// of that system.
func doctor(system string, more ...string) rule {
	return rule{"infrastructure/" + system + "/doctor", append(more, infra+system, infra+"operator", infra+"process/config")}
}

// emulator is the rule of one emulator: its own tree, Pebble, and the vendor's SDK, which
// gives a test a ready client.
func emulator(name string, more ...string) rule {
	return rule{"infrastructure/emulator/" + name, append(more, infra+"emulator/", infra+"httpapi/hostguard", infra+"httpapi/limit", "github.com/cockroachdb/pebble/v2")}
}

// forbidden are packages that a folder must not import, although they belong to the standard
// library or to a permitted prefix.
var forbidden = map[string][]string{
	"domain":         {"net", "net/http", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand"},
	"application":    {"net", "net/http", "os"},
	"infrastructure": {"testing", changefeed + "/memfeed", changefeed + "/memstore"},
}

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func TestImportsPointInward(t *testing.T) {
	packages, std := list(t, "./...")
	for _, p := range packages {
		path, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || under(p.ImportPath, "tests") {
			continue
		}
		r := ruleOf(path)
		if r == nil {
			t.Errorf("%s has no rule", path)
			continue
		}
		for _, imported := range p.Imports {
			if !std[imported] && !r.permits(imported) {
				t.Errorf("%s imports %s, which the rule of %s does not allow", path, imported, r.path)
			}
			for folder, denied := range forbidden {
				suite := imported == "testing" && strings.HasSuffix(path, "test") // such as recordstoretest
				if under(p.ImportPath, folder) && slices.Contains(denied, imported) && !suite {
					t.Errorf("%s imports %s, which is forbidden below %s", path, imported, folder)
				}
			}
		}
	}
}

// ruleOf returns the rule with the longest path that covers a package.
func ruleOf(path string) (longest *rule) {
	for i := range rules {
		if under(module+"/"+path, rules[i].path) && (longest == nil || len(rules[i].path) > len(longest.path)) {
			longest = &rules[i]
		}
	}
	return longest
}

func (r *rule) permits(imported string) bool {
	return under(imported, r.path) || slices.ContainsFunc(r.allow, func(prefix string) bool { return strings.HasPrefix(imported+"$", prefix) })
}

// The root package is an index of names for adopters, not a layer: nothing but feedboxtest, which is
// written as an adopter would, imports it, and it decides nothing.
func TestRootPackageHasOnlyNames(t *testing.T) {
	packages, _ := list(t, "./...")
	for _, p := range packages {
		if slices.Contains(p.Imports, module) && !under(p.ImportPath, "infrastructure/lab/feedboxtest", "tests") {
			t.Errorf("%s imports the root package: import the packages that it names", p.ImportPath)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../feedbox.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob("../../*.go"); err != nil || len(files) != 1 {
		t.Errorf("%v, %v; want feedbox.go only", files, err)
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := len(f.Body.List); n > 4 {
			t.Errorf("%s has %d statements, more than 4", f.Name, n)
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.IfStmt:
				if check, ok := n.Cond.(*ast.BinaryExpr); !ok || check.Op != token.NEQ || n.Else != nil {
					t.Errorf("%s decides something", f.Name)
				}
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.GoStmt, *ast.FuncLit:
				t.Errorf("%s has a %T", f.Name, n)
			}
			return true
		})
	}
}

// The rules of wiring and cmd are wide, so these are narrower.
func TestOnlyFeedboxDevImportsEmulatorsAndLab(t *testing.T) {
	packages, _ := list(t, "./cmd/...")
	for _, p := range packages {
		if !under(p.ImportPath, "infrastructure/wiring", "cmd/feedbox") {
			continue
		}
		for _, imported := range p.Imports {
			if under(imported, "infrastructure/emulator", "infrastructure/lab", "tests") {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

func TestTheProductionBinaryLinksNoTestCode(t *testing.T) {
	packages, _ := list(t, "./cmd/feedbox")
	for _, p := range packages {
		if under(p.ImportPath, "infrastructure/emulator", "infrastructure/lab", "tests") || p.ImportPath == "testing" || strings.HasPrefix(p.ImportPath, "github.com/cockroachdb/") {
			t.Errorf("cmd/feedbox links %s", p.ImportPath)
		}
	}
}

// under reports whether an import path is in one of the module's subtrees.
func under(path string, trees ...string) bool {
	for _, tree := range trees {
		full := module + "/" + tree
		if path == full || strings.HasPrefix(path, full+"/") {
			return true
		}
	}
	return false
}

// list returns the packages that match pattern and all their dependencies.
func list(t *testing.T, pattern string) (packages []pkg, std map[string]bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports", pattern)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pattern, err)
	}
	std = map[string]bool{"C": true, "unsafe": true}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, std
		} else if err != nil {
			t.Fatal(err)
		}
		std[p.ImportPath] = p.Standard
		packages = append(packages, p)
	}
}
