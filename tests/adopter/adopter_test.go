package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources returns the files of the service without tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.go", "*/*.go"} {
		paths, err := filepath.Glob(pattern)
		must(t, err)
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				text, err := os.ReadFile(path)
				must(t, err)
				texts[path] = string(text)
			}
		}
	}
	return texts
}

// The service stays small: its lines are counted including blank lines and comments.
func TestServiceIsSmall(t *testing.T) {
	all := 0
	for path, text := range sources(t) {
		n := strings.Count(text, "\n")
		all += n
		if filepath.Dir(path) == "store" && n > 45 {
			t.Errorf("%s has %d lines, want at most 45 for persistence", path, n)
		}
	}
	t.Logf("%d lines", all)
	if all > 480 {
		t.Errorf("the service has %d lines, want at most 480", all)
	}
}

// The service uses only packages that adopters can import.
func TestServiceImportsOnlyPublicPackages(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`+"\n"+`{{join .TestImports "\n"}}`+"\n"+`{{join .XTestImports "\n"}}`, "./...").Output()
	must(t, err)
	for imported := range strings.FieldsSeq(string(out)) {
		if strings.Contains(imported, "/internal/") || strings.Contains(imported, "/tests/") {
			t.Errorf("%s is imported", imported)
		}
	}
}

var block = regexp.MustCompile("(?s)```go\n(.*?)```")

// Every block of the tutorial is in the sources, except those of its last chapter, which adds an
// event.
func TestTutorialBlocksAreInSources(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	text, rest, found := strings.Cut(string(readme), "## A fifth event")
	if !found || !strings.Contains(rest, "feedbox.JSONEvent[order.LineRemoved]()") {
		t.Error("the chapter about a fifth event is missing")
	}
	var all strings.Builder
	texts := sources(t)
	for _, example := range []string{"service_test.go", "payments_test.go"} {
		source, err := os.ReadFile(example)
		must(t, err)
		texts[example] = string(source)
	}
	for _, source := range texts {
		all.WriteString(strings.Join(strings.Fields(source), " ") + " ")
	}
	blocks := block.FindAllStringSubmatch(text, -1)
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, b := range blocks {
		for part := range strings.SplitSeq(b[1], "// ...\n") {
			if part = strings.Join(strings.Fields(part), " "); !strings.Contains(all.String(), part) {
				t.Errorf("no source has this block:\n%s", part)
			}
		}
	}
}

// The fifth event of the tutorial's last chapter compiles and works.
func TestTutorialFifthEventWorks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	_, chapter, _ := strings.Cut(string(readme), "## A fifth event")
	blocks := block.FindAllStringSubmatch(chapter, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d blocks, want two of the domain and one registration", len(blocks))
	}
	events, verbs, registration := blocks[0][1], blocks[1][1], blocks[2][1]
	parent, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	dir := t.TempDir()
	for path, text := range sources(t) {
		switch path {
		case filepath.Join("order", "events.go"):
			text += events
		case filepath.Join("order", "order.go"):
			text += verbs
		case filepath.Join("store", "store.go"):
			text = strings.Replace(text, "feedbox.JSONEvent[order.Cancelled](),", "feedbox.JSONEvent[order.Cancelled](),\n"+registration, 1)
		}
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(text), "=> ../..", "=> "+parent, 1)), 0o600))
	}
	const fifth = `package main

import (
	"feedbox"
	"feedbox/infrastructure/lab/feedboxtest"
	"testing"
	"time"

	"example.com/orders/order"
	"example.com/orders/store"
	"github.com/google/uuid"
)

func TestRemove(t *testing.T) {
	s := feedboxtest.Start(t, nil)
	orders, err := store.Open(s.Container("data"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := orders.Create(t.Context(), feedbox.Creation[*order.Order]{Make: func(id uuid.UUID, hash string) (*order.Order, error) {
		return order.Place(id, hash, "Contoso", time.Now())
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = orders.Update(t.Context(), feedbox.Target{ID: made.Aggregate.ID()}, func(o *order.Order) error {
		if err := o.Add("pen", 3, 1, time.Now()); err != nil {
			return err
		}
		return o.Remove("pen", time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	if events := s.Received(3); events[2].Action != "OrderLineRemovedEvent" {
		t.Errorf("sent %+v", events)
	}
}
`
	must(t, os.WriteFile(filepath.Join(dir, "fifth_test.go"), []byte(fifth), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-run", "TestRemove", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
