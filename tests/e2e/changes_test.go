// Package e2e tests the real binaries end to end, from HTTP to Service Bus, with kill -9 in between.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Create, rename and delete a contact. Each event reaches the subscriber, and a refused change raises
// none.
func TestChangesReachSubscriber(t *testing.T) {
	dev, e := testkit.StartDev(t, testkit.Build(t), testkit.AnyPorts("--ephemeral")...)

	created := request(t, http.MethodPost, e.API+"/api/contacts", `{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","description":"This is a contact","companyName":"Contoso"}`, nil)
	wantStatus(t, created, http.StatusCreated)
	if created.header.Get("ETag") == "" || !strings.HasPrefix(created.header.Get("Location"), "/api/contacts/") && !strings.Contains(created.header.Get("Location"), "/api/contacts/") {
		t.Fatalf("headers of the created contact: %v", created.header)
	}
	id := created.header.Get("Location")[strings.LastIndex(created.header.Get("Location"), "/")+1:]
	awaitOutput(t, dev, "event ContactCreatedEvent  contact "+id+"  sequence 1  version 1")

	renamed := request(t, http.MethodPost, e.API+"/api/contacts/"+id+"/update-name", `{"firstName":"Jane","lastName":"Doe"}`, nil)
	wantStatus(t, renamed, http.StatusNoContent)
	awaitOutput(t, dev, "event ContactNameUpdatedEvent  contact "+id+"  sequence 2  version 2")

	read := request(t, http.MethodGet, e.API+"/api/contacts/"+id, "", nil)
	wantStatus(t, read, http.StatusOK)
	if read.header.Get("ETag") != renamed.header.Get("ETag") || !strings.Contains(read.body, `"Jane"`) {
		t.Fatalf("read %v %s after the rename answered %v", read.header, read.body, renamed.header)
	}
	wantStatus(t, request(t, http.MethodGet, e.API+"/api/contacts/"+id, "", map[string]string{"If-None-Match": read.header.Get("ETag")}), http.StatusNotModified)

	// A stale ETag changes nothing and raises nothing.
	stale := request(t, http.MethodPost, e.API+"/api/contacts/"+id+"/update-email", `{"email":"x@contoso.com"}`, map[string]string{"If-Match": created.header.Get("ETag")})
	wantProblem(t, stale, http.StatusPreconditionFailed)
	wantStatus(t, request(t, http.MethodDelete, e.API+"/api/contacts/"+id, "", nil), http.StatusNoContent)
	awaitOutput(t, dev, "event ContactDeletedEvent  contact "+id+"  sequence 3  version 3")
	wantStatus(t, request(t, http.MethodDelete, e.API+"/api/contacts/"+id, "", nil), http.StatusNoContent)
	wantProblem(t, request(t, http.MethodGet, e.API+"/api/contacts/"+id, "", nil), http.StatusNotFound)
	if strings.Contains(dev.Output(), "ContactEmailUpdatedEvent") {
		t.Error("a refused change raised an event")
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code := dev.Terminate(ctx); code != 0 {
		t.Fatalf("SIGTERM: exit code %d, want 0", code)
	}
}

func TestInvalidRequestReturnsProblem(t *testing.T) {
	_, e := testkit.StartDev(t, testkit.Build(t), testkit.AnyPorts("--ephemeral")...)
	contacts := e.API + "/api/contacts"
	unknown := contacts + "/11111111-2222-4333-8444-555555555555"
	for name, c := range map[string]struct {
		method, url, body string
		status            int
	}{
		"malformed JSON":  {http.MethodPost, contacts, `{"firstName":`, http.StatusBadRequest},
		"unknown field":   {http.MethodPost, contacts, `{"firstName":"A","lastName":"B","companyName":"C","nope":1}`, http.StatusUnprocessableEntity},
		"empty name":      {http.MethodPost, contacts, `{"firstName":"","lastName":"B","companyName":"C"}`, http.StatusUnprocessableEntity},
		"oversized body":  {http.MethodPost, contacts, `{"firstName":"` + strings.Repeat("a", 70_000) + `"}`, http.StatusRequestEntityTooLarge},
		"unknown contact": {http.MethodPost, unknown + "/update-name", `{"firstName":"A","lastName":"B"}`, http.StatusNotFound},
		"no such id":      {http.MethodGet, contacts + "/not-a-guid", "", http.StatusNotFound},
		"no such path":    {http.MethodGet, e.API + "/nowhere", "", http.StatusNotFound},
		"wrong method":    {http.MethodPut, contacts, `{}`, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblem(t, request(t, c.method, c.url, c.body, nil), c.status)
		})
	}
}

type reply struct {
	status int
	header http.Header
	body   string
}

func request(t *testing.T, method, url, body string, header map[string]string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

func wantStatus(t *testing.T, r reply, status int) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
}

// wantProblem checks the format of an error.
func wantProblem(t *testing.T, r reply, status int) {
	t.Helper()
	wantStatus(t, r, status)
	var p struct {
		Status int
		Title  string
		Code   string
	}
	if err := json.Unmarshal([]byte(r.body), &p); err != nil || p.Status != status || p.Title == "" || p.Code == "" {
		t.Fatalf("problem document %s (%v)", r.body, err)
	}
	if ct := r.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/problem+json") {
		t.Fatalf("content type %q", ct)
	}
}

// awaitOutput waits until a process has printed text.
func awaitOutput(t *testing.T, p *testkit.Process, text string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "output "+text, func() bool { return strings.Contains(p.Output(), text) })
}
