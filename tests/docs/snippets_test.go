package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"feedbox/tests/testenv"
)

// root is the root of the repository.
const root = "../.."

// snippet is Go code in a document or a package comment.
type snippet struct {
	where  string // file and line
	dir    string // of the file, below root
	code   string
	output string // of a program: the text block after it
}

// program reports whether s is a whole program, which must print the text block after it.
func (s snippet) program() bool { return strings.HasPrefix(s.code, "package main\n") }

// test reports whether s is a whole test, which must pass.
func (s snippet) test() bool { return strings.HasPrefix(s.code, "func Test") }

// known maps the package names in snippets to import paths.
var known = map[string]string{
	"testing": "testing", "context": "context", "fmt": "fmt", "time": "time", "http": "net/http",
	"azcore":       "github.com/Azure/azure-sdk-for-go/sdk/azcore",
	"azcosmos":     "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos",
	"azservicebus": "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus",
	"subscriber":   "feedbox/infrastructure/broker/servicebus/subscriber",
	"consumer":     "feedbox/infrastructure/consumer",
	"pgx":          "github.com/jackc/pgx/v5", "pgxpool": "github.com/jackc/pgx/v5/pgxpool",
	"cosmosinbox":   "feedbox/infrastructure/consumer/cosmosinbox",
	"postgresinbox": "feedbox/infrastructure/consumer/postgresinbox",
	"firestore":     "cloud.google.com/go/firestore", "firestoreinbox": "feedbox/infrastructure/consumer/firestoreinbox",
	"servicebus":   "feedbox/infrastructure/broker/servicebus",
	"rabbitmq":     "feedbox/infrastructure/broker/rabbitmq",
	"relayservice": "feedbox/infrastructure/relay/relayservice",
	"relayport":    "feedbox/infrastructure/relay/relayport",
	"cosmosrelay":  "feedbox/infrastructure/store/cosmos/cosmosrelay",
	"cosmos":       "feedbox/infrastructure/store/cosmos",
	"document":     "feedbox/infrastructure/store/document",
	"postgres":     "feedbox/infrastructure/store/postgres",
	"recordstore":  "feedbox/infrastructure/store/recordstore",
	"uuid":         "github.com/google/uuid",
	"aggregate":    "feedbox/domain/aggregate",
	"changefeed":   "feedbox/changefeed",
	"cosmosfeed":   "feedbox/changefeed/cosmosfeed",
	"feedboxtest":  "feedbox/infrastructure/lab/feedboxtest",
	"cosmosemu":    "feedbox/infrastructure/emulator/cosmosemu",
	"busemu":       "feedbox/infrastructure/emulator/busemu",
}

// free declares the variables that snippets use without declaring them.
var free = map[string]string{
	"t":          "var t *testing.T",
	"ctx":        "var ctx context.Context",
	"endpoint":   "var endpoint string",
	"credential": "var credential azcore.TokenCredential",
	"client":     "var client *azcosmos.Client",
	"inbox":      "var inbox consumer.Inbox",
	"pool":       "var pool *pgxpool.Pool",
	"received":   "var received *consumer.Event",
	"handle":     "var handle consumer.Handler",
	"bus":        "var bus *azservicebus.Client",
	"feed":       "var feed changefeed.Feed",
	"leases":     "var leases changefeed.LeaseStore",
	"handler":    "var handler changefeed.Handler",
	"store":      "var store relayport.Store",
	"broker":     "var broker relayport.Broker",
	"kind":       "var kind *document.Kind[aggregate.Aggregate]",
	"sender":     "var sender *servicebus.Client",
	"namespace":  "var namespace servicebus.ClientConfig",
}

// Go code in a document is a program with the documented output, a test that passes, or
// code that compiles. Go code in a package comment compiles.
func TestSnippetsCompileAndRun(t *testing.T) {
	documents, comments := snippets(t)
	if len(documents) == 0 || len(comments) < 3 {
		t.Fatalf("found %d snippets in documents and %d in the documentation of packages", len(documents), len(comments))
	}
	dir := t.TempDir()
	files := map[string]string{}
	packages := map[string]snippet{}
	var compiled []string
	for i, s := range slices.Concat(documents, comments) {
		name := fmt.Sprintf("snippet%d", i)
		file := name + ".go"
		if s.test() {
			file = name + "_test.go"
		}
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(s.file(name)), 0o600); err != nil {
			t.Fatal(err)
		}
		place, err := filepath.Abs(filepath.Join(root, s.dir, name, file))
		if err != nil {
			t.Fatal(err)
		}
		files[place] = path
		one := "./" + filepath.ToSlash(filepath.Join(s.dir, name))
		if s.test() || s.program() {
			packages[one] = s
		} else {
			compiled = append(compiled, one)
		}
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = root
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Errorf("%v:\n%s%s", err, out.String(), errs.String())
		}
		return out.String()
	}
	command("go", append([]string{"build", "-overlay", overlay}, compiled...)...)
	// Linking takes longest. Otherwise the first program and the first test run, and the others are compiled.
	var programs, tests []string
	for _, one := range slices.Sorted(maps.Keys(packages)) {
		if packages[one].test() {
			tests = append(tests, one)
		} else {
			programs = append(programs, one)
		}
	}
	p, n := testenv.Sample(t, 1, len(programs)), testenv.Sample(t, 1, len(tests))
	if rest := slices.Concat(programs[p:], tests[n:]); len(rest) > 0 {
		command("go", append([]string{"list", "-test", "-export", "-overlay", overlay}, rest...)...)
	}
	for _, one := range slices.Concat(programs[:p], tests[:n]) { // go run and go test require existing folders, which an overlay does not create
		s, binary := packages[one], filepath.Join(dir, "binary")
		if s.test() {
			command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, "-overlay", overlay, one)
			command(binary, "-test.timeout=1m")
			continue
		}
		command("go", "build", "-ldflags=-s -w", "-o", binary, "-overlay", overlay, one)
		if out := command(binary); out != s.output {
			t.Errorf("%s: the program prints\n%swant\n%s", s.where, out, s.output)
		}
	}
}

// file returns the snippet as a file of package name.
func (s snippet) file(name string) string {
	if s.program() {
		return fmt.Sprintf("//line /%s\n%s", s.where, s.code)
	}
	body := s.code
	if !s.test() {
		body = s.function()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", name)
	plain := comment.ReplaceAllString(body, "")
	for alias, path := range known {
		if regexp.MustCompile(`(^|[^\w."])` + alias + `\.[A-Z]`).MatchString(plain) {
			fmt.Fprintf(&b, "import %s %q\n", alias, path)
		}
	}
	fmt.Fprintf(&b, "\n//line /%s\n%s", s.where, body)
	return b.String()
}

var comment = regexp.MustCompile(`// .*`)

var declared = regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`)

// function wraps a snippet that consists of statements.
func (s snippet) function() string {
	var before, after strings.Builder
	given := map[string]bool{}
	for _, names := range declared.FindAllStringSubmatch(s.code, -1) {
		for name := range strings.SplitSeq(names[1], ", ") {
			given[name] = true
			if name != "_" {
				fmt.Fprintf(&after, "_ = %s\n", name)
			}
		}
	}
	for name, declaration := range free {
		if !given[name] && regexp.MustCompile(`\b`+name+`\b`).MatchString(s.code) {
			fmt.Fprintf(&before, "%s\n", declaration)
		}
	}
	return fmt.Sprintf("func _() {\n%s%s%s}\n", before.String(), s.code, after.String())
}

// snippets returns the Go blocks of all documents, and the indented blocks in package
// comments for other modules. Indented blocks without a declaration are drawings.
func snippets(t *testing.T) (documents, comments []snippet) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if slices.Contains([]string{"node_modules", "testdata", "internal", "tests"}, name) || strings.HasPrefix(name, ".") && name != "." && name != ".." && path != root {
				return fs.SkipDir
			}
			return nil
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case filepath.Ext(path) == ".md":
			found, err := ofDocument(path, below)
			documents = append(documents, found...)
			return err
		case d.Name() == "doc.go":
			found, err := ofPackage(path, below)
			comments = append(comments, found...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents, comments
}

func ofDocument(path, below string) (all []snippet, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	inside := "" // the language of the block
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && inside != "":
			inside = ""
		case isFence:
			inside = cmp.Or(fence, "none")
			if fence == "go" {
				all = append(all, snippet{where: fmt.Sprintf("%s:%d", below, i+2), dir: "tests/docs"})
			}
		case inside == "go":
			all[len(all)-1].code += line + "\n"
		case inside == "text" && len(all) > 0 && all[len(all)-1].program():
			all[len(all)-1].output += line + "\n"
		}
	}
	return all, nil
}

func ofPackage(path, below string) (all []snippet, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil || file.Doc == nil {
		return nil, err
	}
	var code strings.Builder
	first := 0
	end := func() {
		if declared.MatchString(code.String()) {
			all = append(all, snippet{where: fmt.Sprintf("%s:%d", below, first), dir: filepath.Dir(below), code: code.String()})
		}
		code.Reset()
		first = 0
	}
	for _, c := range file.Doc.List {
		line, indented := strings.CutPrefix(c.Text, "//\t")
		if !indented {
			end()
			continue
		}
		if first == 0 {
			first = set.Position(c.Pos()).Line
		}
		code.WriteString(line + "\n")
	}
	end()
	return all, nil
}
