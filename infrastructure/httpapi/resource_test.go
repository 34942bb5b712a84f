package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
	contactsapi "feedbox/infrastructure/httpapi/contacts"
)

// startBoth serves notes and contacts.
func startBoth(t *testing.T, options *httpapi.Options) *api {
	t.Helper()
	a := &api{t: t, logs: &syncBuffer{}, memory: newMemory()}
	m := mediator.New()
	if err := errors.Join(
		contacts.RegisterCommands(m, contacts.CommandPorts{Work: a.memory, IDs: uuid.New, Now: clock}),
		contacts.RegisterQueries(m, contacts.QueryPorts{Contacts: memoryReader{a.memory}}),
	); err != nil {
		t.Fatal(err)
	}
	options.Logger = slog.New(slog.NewJSONHandler(a.logs, nil))
	kept := &notes{known: map[uuid.UUID]note{}}
	server, err := httpapi.New([]httpapi.Resource{contactsapi.Resource(m), kept.resource()}, options)
	if err != nil {
		t.Fatal(err)
	}
	a.serve(server)
	return a
}

const milk = `{"text":"buy milk","priority":1}`

// TestSecondResource creates, changes and deletes a note on a server that also has contacts.
func TestSecondResource(t *testing.T) {
	a := startBoth(t, &httpapi.Options{})
	created := a.do(http.MethodPost, "/api/notes", milk)
	path := created.header.Get("Location")
	if created.status != http.StatusCreated || created.header.Get("ETag") != `"v1"` || !strings.HasPrefix(path, "/api/notes/") {
		t.Fatalf("create: %d %v %s", created.status, created.header, created.body)
	}
	if read := a.do(http.MethodGet, path, ""); read.status != http.StatusOK || read.body != created.body || !strings.Contains(read.body, `"text":"buy milk","priority":1,"version":1`) {
		t.Errorf("read: %d %s", read.status, read.body)
	}
	contact, _ := a.create()
	for _, step := range []struct {
		what, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"a contact is there too", http.MethodGet, contact, "", nil, 200, ""},
		{"the client has it", http.MethodGet, path, "", []string{"If-None-Match", `"v1"`}, 304, ""},
		{"rewrite", http.MethodPost, path + "/rewrite", `{"text":"buy oat milk","priority":2}`, []string{"If-Match", `"v1"`}, 204, ""},
		{"a stale rewrite", http.MethodPost, path + "/rewrite", milk, []string{"If-Match", `"v1"`}, 412, "precondition_failed"},
		{"rewrite unless in this state", http.MethodPost, path + "/rewrite", milk, []string{"If-None-Match", `"v2"`}, 412, "precondition_failed"},
		{"faults of content", http.MethodPost, path + "/rewrite", `{"text":"","priority":1.5,"colour":"red"}`, nil, 422, "validation_failed"},
		{"a verb of contacts", http.MethodPost, path + "/update-name", `{}`, nil, 404, "route_not_found"},
		{"no id", http.MethodGet, "/api/notes/7", "", nil, 404, "note_not_found"},
		{"a contact's id", http.MethodGet, strings.Replace(contact, "contacts", "notes", 1), "", nil, 404, "note_not_found"},
		{"a note's id", http.MethodGet, strings.Replace(path, "notes", "contacts", 1), "", nil, 404, "contact_not_found"},
		{"another method", http.MethodPut, path, milk, nil, 405, "method_not_allowed"},
		{"no audit trail is registered", http.MethodGet, path + "/audit", "", nil, 404, "route_not_found"},
		{"delete", http.MethodDelete, path, "", nil, 204, ""},
		{"it is gone", http.MethodGet, path, "", nil, 404, "note_not_found"},
	} {
		got := a.do(step.method, step.path, step.body, step.headers...)
		if got.status != step.status || got.header.Get("x-ms-error-code") != step.code {
			t.Errorf("%s: %d %s, want %d %s", step.what, got.status, got.body, step.status, step.code)
		}
	}
	if !strings.Contains(a.logs.String(), `"note_id":"`+strings.TrimPrefix(path, "/api/notes/")+`"`) {
		t.Errorf("no line of the log has the id of the note: %s", a.logs)
	}
}

// Faults of numbers, booleans and objects are reported like those of texts.
func TestInvalidMembersAreReported(t *testing.T) {
	a := start(t, nil)
	a.serve(must(t, httpapi.Resource{Noun: "thing", Routes: []httpapi.Route{
		httpapi.Create(httpapi.Operation{}, func(_ context.Context, b *thing, _ httpapi.Creation) (httpapi.Created[thing], error) {
			return httpapi.Created[thing]{ID: uuid.New(), View: *b}, nil
		}),
	}}))
	for body, want := range map[string]string{
		`{"size":-7,"done":true,"place":{"x":1},"note":null}`: `201`,
		`{"size":"7","done":"true","place":[],"note":1}`:      `/size must be a whole number, not a string; /done must be true or false, not a string; /place must be an object, not an array; /note must be a string or null, not a number; `,
		`{}`: `/size is required; /done is required; /place is required; /note is required; `,
		`{"size":1e2,"done":null,"place":{"y":1},"note":""}`:            `/size must be a whole number of at most 18 digits, without fraction and exponent; /done must be true or false, not null; /place/y is not a member of this body; /place/x is required; `,
		`{"size":1,"done":false,"place":{"x":1,"x":2},"note":"n"}`:      `/place/x must not be named twice; `,
		`{"size":1,"done":false,"place":{"z":1},"place":{},"note":"n"}`: `/place must not be named twice; `,
	} {
		got := a.do(http.MethodPost, "/api/things", body)
		if got.status == http.StatusCreated {
			if want != "201" || got.body != `{"Size":-7,"Done":true,"X":1,"Note":null}`+"\n" {
				t.Errorf("%s is read as %s, want %s", body, got.body, want)
			}
			continue
		}
		var said strings.Builder
		for _, e := range problemOf(t, got).Errors {
			said.WriteString(e.Pointer + " " + e.Detail + "; ")
		}
		if said.String() != want {
			t.Errorf("%s:\n got %s\nwant %s", body, said.String(), want)
		}
	}
}

type thing struct {
	Size int64
	Done bool
	X    int64
	Note *string
}

func (b *thing) Members() []httpapi.Member {
	return []httpapi.Member{
		httpapi.Integer("size", nil, &b.Size), httpapi.Boolean("done", &b.Done),
		httpapi.Object("place", httpapi.Integer("x", nil, &b.X)), httpapi.OptionalText("note", nil, true, &b.Note),
	}
}

func (b *thing) Check() error { return nil }

func must(t *testing.T, resources ...httpapi.Resource) *httpapi.Server {
	t.Helper()
	server, err := httpapi.New(resources, nil)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// The scope to write contacts grants nothing on notes.
func TestEachResourceHasItsScopes(t *testing.T) {
	a := startBoth(t, &httpapi.Options{Auth: granted{"contacts.read", "contacts.write", "notes.read"}})
	a.create()
	got := a.do(http.MethodPost, "/api/notes", milk)
	if got.status != http.StatusForbidden || !strings.Contains(got.body, "notes.write") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := a.do(http.MethodGet, "/api/notes", ""); got.status != http.StatusOK || got.body != `{"items":[],"hasMore":false}`+"\n" { // the line break keeps the prompt of a shell off the answer
		t.Errorf("%d %s", got.status, got.body)
	}
}

// granted authenticates all callers with the same scopes.
type granted []string

func (g granted) Authenticate(context.Context, *http.Request) (auth.Principal, error) {
	return auth.Principal{ID: "caller", Scopes: g}, nil
}
func (granted) Challenge() string { return "Bearer" }

// A listing continues page by page, and its token is refused by another listing.
func TestListingsOfTwoResources(t *testing.T) {
	a := startBoth(t, &httpapi.Options{})
	for range 3 {
		a.do(http.MethodPost, "/api/notes", milk)
	}
	first := a.do(http.MethodGet, "/api/notes?pageSize=2", "")
	token := first.header.Get("x-continuation-token")
	second := a.do(http.MethodGet, "/api/notes?pageSize=2", "", "x-continuation-token", token)
	if n, m := len(pageOf(t, first).Items), len(pageOf(t, second).Items); n != 2 || m != 1 || pageOf(t, second).HasMore {
		t.Errorf("%d and %d notes: %s %s", n, m, first.body, second.body)
	}
	if got := a.do(http.MethodGet, "/api/contacts", "", "x-continuation-token", token); got.status != http.StatusBadRequest {
		t.Errorf("the token of the notes in the listing of contacts: %d %s", got.status, got.body)
	}
}

// The document has both resources, each with its own nouns.
func TestOneDocumentForTwoResources(t *testing.T) {
	a := startBoth(t, &httpapi.Options{Auth: &auth.Entra{}})
	var document struct {
		Info  struct{ Title, Description string }
		Tags  []struct{ Name, Description string }
		Paths map[string]map[string]struct {
			OperationID, Summary, Description string
			Tags                              []string
			Security                          []map[string][]string
		}
		Components struct {
			Schemas   map[string]json.RawMessage
			Responses map[string]struct{ Description string }
		}
	}
	got := a.do(http.MethodGet, "/openapi.json", "")
	if err := json.Unmarshal([]byte(got.body), &document); err != nil {
		t.Fatal(err)
	}
	if document.Info.Title != "Feedbox contacts and notes" || len(document.Tags) != 2 || document.Tags[1].Description != "Notes, and who changed them." {
		t.Errorf("%+v %+v", document.Info, document.Tags)
	}
	for _, name := range []string{"Contact", "ContactPage", "CreateContact", "Note", "NotePage", "CreateNote", "Rewrite", "Problem"} {
		if document.Components.Schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	rewrite := document.Paths["/api/notes/{id}/rewrite"]["post"]
	if rewrite.OperationID != "rewrite" || rewrite.Summary != "Write a note anew" || len(rewrite.Tags) != 1 || rewrite.Tags[0] != "notes" ||
		len(rewrite.Security) != 1 || rewrite.Security[0]["caller"][0] != "notes.write" ||
		!strings.HasPrefix(rewrite.Description, "The event NoteRewritten is stored") {
		t.Errorf("rewrite: %+v", rewrite)
	}
	if missing := document.Components.Responses["404"].Description; missing != "There is no such contact or note, or it was deleted." {
		t.Errorf("404 is %q", missing)
	}
	if !strings.Contains(got.body, "contacts.read, contacts.write, notes.read or notes.write") {
		t.Error("the scopes are not all named")
	}
	if left := regexp.MustCompile(`\{(a )?[nN]oun\}|\{[pP]lural\}`).FindString(got.body); left != "" {
		t.Errorf("%s is left in the document", left)
	}
	for _, ref := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(got.body, -1) {
		if document.Components.Schemas[ref[1]] == nil {
			t.Errorf("the reference %s does not resolve", ref[0])
		}
	}
	if page := a.do(http.MethodGet, "/docs", ""); !strings.Contains(page.body, "<title>Feedbox contacts and notes</title>") {
		t.Errorf("%s", page.body)
	}
}

// New reports all invalid resources in one error.
func TestInvalidResourcesAreListed(t *testing.T) {
	read := httpapi.Read(httpapi.Operation{}, func(context.Context, query.Read) (httpapi.Found[note], error) {
		return httpapi.Found[note]{}, io.EOF
	})
	act := func(context.Context, command.Target) (command.Updated, error) { return command.Updated{}, nil }
	of := func(noun, path string, routes ...httpapi.Route) httpapi.Resource {
		return httpapi.Resource{Noun: noun, Path: path, Routes: routes}
	}
	for name, row := range map[string]struct {
		resources []httpapi.Resource
		want      []string
	}{
		"none":           {nil, []string{"no resource"}},
		"empty":          {[]httpapi.Resource{{}}, []string{`resource "": Noun and Plural`, "Routes is empty"}},
		"a bad path":     {[]httpapi.Resource{of("note", "notes/{x}", read)}, []string{"Path must be", "notes/{x}"}},
		"a taken path":   {[]httpapi.Resource{of("note", "/docs/notes", read)}, []string{"/docs is reserved"}},
		"paths in paths": {[]httpapi.Resource{of("note", "/api/notes", read), of("line", "/api/notes/lines", read)}, []string{`"note" and "line"`}},
		"the same twice": {[]httpapi.Resource{of("note", "/a", read), of("note", "/b", read)}, []string{"duplicate noun note", "duplicate operation readNote"}},
		"a zero route":   {[]httpapi.Resource{of("note", "", httpapi.Route{})}, []string{"not built by this package"}},
		"no function":    {[]httpapi.Resource{of("note", "", read, httpapi.Delete(httpapi.Operation{}, nil))}, []string{"Delete: the function is nil"}},
		"no read":        {[]httpapi.Resource{of("note", "", httpapi.Delete(httpapi.Operation{}, act))}, []string{"changes but no Read"}},
		"a bad verb":     {[]httpapi.Resource{of("note", "", read, httpapi.Act("Burn it", httpapi.Operation{}, act))}, []string{`"Burn it"`}},
		"a route twice":  {[]httpapi.Resource{of("note", "", read, read)}, []string{"duplicate GET /api/notes/{id}"}},
		"invalid members": {[]httpapi.Resource{of("note", "", read, httpapi.Change("fill", httpapi.Operation{Summary: "Fill"}, func(context.Context, *invalidBody, command.Target) (command.Updated, error) {
			return command.Updated{}, nil
		}))}, []string{`operation "fill": `, `member "c" is listed twice`, `member "d"`, `member ""`}},
		"no such problem": {[]httpapi.Resource{of("note", "", read, httpapi.Act("burn", httpapi.Operation{Summary: "Burn", Problems: []int{418}}, act))}, []string{"418"}},
		"two views": {[]httpapi.Resource{of("note", "", read, httpapi.Create(httpapi.Operation{}, func(context.Context, *noteBody, httpapi.Creation) (httpapi.Created[noteItem], error) {
			return httpapi.Created[noteItem]{}, nil
		}))}, []string{"all must have the same"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := httpapi.New(row.resources, nil)
			if err == nil {
				t.Fatal("New accepts it")
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %s", err, want)
				}
			}
		})
	}
}

// An operation without a summary is described by its verb.
func TestSummaryOfAVerbHasADefault(t *testing.T) {
	act := func(context.Context, command.Target) (command.Updated, error) { return command.Updated{}, nil }
	s, err := httpapi.New([]httpapi.Resource{{Noun: "order", Routes: []httpapi.Route{
		httpapi.Read(httpapi.Operation{}, func(context.Context, query.Read) (httpapi.Found[note], error) { return httpapi.Found[note]{}, io.EOF }),
		httpapi.Act("ship", httpapi.Operation{}, act), httpapi.Act("change-address", httpapi.Operation{}, act),
		httpapi.Act("stop", httpapi.Operation{Summary: "Hold on"}, act),
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	for _, want := range []string{`"summary":"Ship an order"`, `"summary":"Change address of an order"`, `"summary":"Hold on"`} {
		if text := strings.ReplaceAll(answer.Body.String(), `": "`, `":"`); !strings.Contains(text, want) {
			t.Errorf("the document has no %s", want)
		}
	}
}

// invalidBody has duplicate members, and members without name or target.
type invalidBody struct{ c string }

func (b *invalidBody) Members() []httpapi.Member {
	return []httpapi.Member{
		httpapi.Text("a", nil, &b.c), httpapi.Object("a/b", httpapi.Boolean("d", nil)),
		httpapi.Text("c", nil, &b.c), httpapi.Text("c", nil, &b.c),
		{},
	}
}
func (b *invalidBody) Check() error { return nil }
