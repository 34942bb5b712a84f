package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

func (a *api) patch(path, body string, headers ...string) answer {
	a.t.Helper()
	return a.do(http.MethodPatch, path, body, append([]string{"Content-Type", "application/merge-patch+json"}, headers...)...)
}

func TestPatch(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, etag := a.create()
	got := a.patch(path, `{"name":{"lastName":"Roe"},"email":null,"company":{"city":"Bern"},"description":"other"}`, "If-Match", etag)
	if got.status != 200 || got.header.Get("ETag") == etag || got.header.Get("ETag") == "" {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	for _, part := range []string{
		`"firstName":"Jane"`, `"lastName":"Roe"`, `"email":null`, `"companyName":"Contoso"`, `"city":"Bern"`, `"description":"other"`, `"version":2`,
	} {
		if !strings.Contains(got.body, part) {
			t.Errorf("%s is missing from %s", part, got.body)
		}
	}
	if read := a.do(http.MethodGet, path, ""); read.body != got.body || read.header.Get("ETag") != got.header.Get("ETag") {
		t.Errorf("the answer %s differs from the stored contact: %s", got.body, read.body)
	}
	for _, nothing := range []string{`{}`, `{"name":{}}`, `{"name":{"firstName":"Jane"},"email":null}`} {
		if same := a.patch(path, nothing); same.status != 200 || same.header.Get("ETag") != got.header.Get("ETag") || same.body != got.body {
			t.Errorf("%s: %d %s", nothing, same.status, same.body)
		}
	}
	if late := a.patch(path, `{"email":"a@b.example"}`, "If-Match", etag); late.status != 412 {
		t.Errorf("a stale precondition: %d %s", late.status, late.body)
	}
	audit := a.do(http.MethodGet, path+"/audit", "")
	if n := strings.Count(audit.body, `UpdatedEvent"`); n != 4 || strings.Count(audit.body, `"version"`) != 2 {
		t.Errorf("want one entry with four events after the creation: %s", audit.body)
	}
}

func TestInvalidPatchesAreRefused(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, etag := a.create()
	for body, want := range map[string]struct {
		status   int
		pointers string
	}{
		`{"name":`:                      {400, ""},
		`[]`:                            {422, ""},
		`null`:                          {422, ""},
		`"x"`:                           {422, ""},
		`{"id":"x","version":1}`:        {422, "/id /version"},
		`{"ttl":1,"createdAt":null}`:    {422, "/ttl /createdAt"},
		`{"name":null}`:                 {422, "/name"},
		`{"name":"Jane"}`:               {422, "/name"},
		`{"name":{"firstName":null}}`:   {422, "/name/firstName"},
		`{"name":{"middleName":"x"}}`:   {422, "/name/middleName"},
		`{"name":{"name":{}}}`:          {422, "/name/name"},
		`{"firstName":"x"}`:             {422, "/firstName"},
		`{"company":null}`:              {422, "/company"},
		`{"company":{"street":[]}}`:     {422, "/company/street"},
		`{"email":""}`:                  {422, "/email"},
		`{"email":1}`:                   {422, "/email"},
		`{"email":null,"email":null}`:   {422, "/email"},
		`{"name":{},"name":{}}`:         {422, "/name"},
		`{"company":{"city":"\u0007"}}`: {422, "/company/city"},
		`{"name":{"firstName":1,"lastName":" "},"email":"x","x":0,"company":{"companyName":null}}`: {422, "/name/firstName /x /name/lastName /email /company/companyName"},
	} {
		got := a.patch(path, body)
		if p := problemOf(t, got); got.status != want.status || strings.TrimSpace(p.pointers()) != want.pointers {
			t.Errorf("%s: %d [%s], want %d [%s]", body, got.status, p.pointers(), want.status, want.pointers)
		}
	}
	got := a.do(http.MethodPatch, path, `{}`, "Content-Type", "application/json")
	if got.status != 415 || got.header.Get("Accept-Patch") != "application/merge-patch+json" {
		t.Errorf("plain JSON: %d %v", got.status, got.header)
	}
	if read := a.do(http.MethodGet, path, ""); read.header.Get("ETag") != etag {
		t.Errorf("a refused patch changed the contact: %s", read.body)
	}
	if got := a.patch("/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2", `{}`); got.status != 404 {
		t.Errorf("an unknown contact: %d %s", got.status, got.body)
	}
}
