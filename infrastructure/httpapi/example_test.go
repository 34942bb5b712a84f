package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/httpapi"
)

// note is the view of a note.
type note struct {
	ID       uuid.UUID `json:"id" doc:"id of the note"`
	Text     string    `json:"text" doc:"what is to be remembered"`
	Priority int64     `json:"priority" doc:"from 1, which is first"`
	Version  int64     `json:"version" doc:"rises by one with each change"`
}

// noteItem is the view of a note in a listing.
type noteItem struct {
	ID uuid.UUID `json:"id" doc:"id of the note"`
}

// noteBody is the body of POST /api/notes and of the change.
type noteBody struct {
	text     string
	priority int64
}

const longestNote = 80

var noteRule = &httpapi.Rule{MaxLength: longestNote, NotEmpty: true}

// Members implements httpapi.Body.
func (b *noteBody) Members() []httpapi.Member {
	return []httpapi.Member{httpapi.Text("text", noteRule, &b.text), httpapi.Integer("priority", nil, &b.priority)}
}

// Check implements httpapi.Body. A real service calls its domain here.
func (b *noteBody) Check() error {
	var faults []fault.Field
	if strings.TrimSpace(b.text) == "" || utf8.RuneCountInString(b.text) > longestNote {
		faults = append(faults, fault.Field{Pointer: "/text", Message: "must have from 1 to 80 characters"})
	}
	if b.priority < 1 {
		faults = append(faults, fault.Field{Pointer: "/priority", Message: "must be at least 1"})
	}
	return fault.Fields(faults...)
}

// notes is an application in memory. A real service has commands and queries here, which
// also handle idempotency keys and session tokens.
type notes struct {
	mu    sync.Mutex // guards all below
	known map[uuid.UUID]note
}

func (n *notes) resource() httpapi.Resource {
	return httpapi.Resource{
		Noun: "note",
		Routes: []httpapi.Route{
			httpapi.Create(httpapi.Operation{Event: "NoteTaken"}, n.take),
			httpapi.Read(httpapi.Operation{}, n.read),
			httpapi.List(httpapi.Operation{}, n.list),
			httpapi.Change("rewrite", httpapi.Operation{Summary: "Write a note anew", Event: "NoteRewritten"}, n.rewrite),
			httpapi.Delete(httpapi.Operation{}, n.tear),
		},
	}
}

func (n *notes) take(_ context.Context, b *noteBody, _ httpapi.Creation) (httpapi.Created[note], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	made := note{ID: uuid.New(), Text: b.text, Priority: b.priority, Version: 1}
	n.known[made.ID] = made
	return httpapi.Created[note]{ID: made.ID, View: made, ETag: made.etag()}, nil
}

func (n *notes) read(_ context.Context, in query.Read) (httpapi.Found[note], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, ok := n.known[in.ID]
	if !ok {
		return httpapi.Found[note]{}, fault.Missing("note", in.ID.String())
	}
	return httpapi.Found[note]{View: found, ETag: found.etag()}, nil
}

// list uses the last id of a page as its continuation.
func (n *notes) list(_ context.Context, in httpapi.Listing) (query.Page[noteItem], error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var page query.Page[noteItem]
	for id := range n.known {
		if id.String() > in.Continuation {
			page.Items = append(page.Items, noteItem{id})
		}
	}
	slices.SortFunc(page.Items, func(a, b noteItem) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	if len(page.Items) > in.PageSize {
		page.Items = page.Items[:in.PageSize]
		page.Continuation = page.Items[in.PageSize-1].ID.String()
	}
	return page, nil
}

func (n *notes) rewrite(_ context.Context, b *noteBody, target command.Target) (command.Updated, error) {
	return n.change(target, func(now *note) { now.Text, now.Priority = b.text, b.priority })
}

func (n *notes) tear(_ context.Context, target command.Target) (command.Updated, error) {
	updated, err := n.change(target, func(now *note) { delete(n.known, now.ID) })
	updated.ETag = ""
	return updated, err
}

func (n *notes) change(target command.Target, verb func(now *note)) (command.Updated, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, ok := n.known[target.ID]
	switch {
	case !ok:
		return command.Updated{}, fault.Missing("note", target.ID.String())
	case len(target.IfMatch) > 0 && !slices.Contains(target.IfMatch, "*") && !slices.Contains(target.IfMatch, now.etag()):
		return command.Updated{}, fault.New(fault.PreconditionFailed, "precondition_failed", "the note has changed")
	}
	now.Version++
	n.known[now.ID] = now
	verb(&now)
	if _, kept := n.known[now.ID]; kept {
		n.known[now.ID] = now
	}
	return command.Updated{ETag: now.etag(), Version: now.Version}, nil
}

func (n note) etag() string { return strconv.Quote("v" + strconv.FormatInt(n.Version, 10)) }

// A resource consists of its noun, bodies and views, and of functions that call the
// application.
func Example() {
	kept := &notes{known: map[uuid.UUID]note{}}
	server, err := httpapi.New([]httpapi.Resource{kept.resource()}, &httpapi.Options{Title: "Notes"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A program calls server.Run with a listener.
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/api/notes", strings.NewReader(`{"text":"buy milk","priority":1}`))
	r.Header.Set("Content-Type", "application/json")
	server.Handler().ServeHTTP(answer, r)
	fmt.Println(answer.Code, answer.Header().Get("ETag"))

	answer = httptest.NewRecorder()
	r = httptest.NewRequest(http.MethodPost, "/api/notes", strings.NewReader(`{"text":"","priority":"high"}`))
	r.Header.Set("Content-Type", "application/json")
	server.Handler().ServeHTTP(answer, r)
	fmt.Println(answer.Code, answer.Header().Get("x-ms-error-code"))
	// Output:
	// 201 "v1"
	// 422 validation_failed
}
