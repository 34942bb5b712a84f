package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"feedbox/infrastructure/httpapi"
)

func TestContactLifecycle(t *testing.T) {
	a := start(t, nil)
	created := a.do(http.MethodPost, "/api/contacts", jane)
	if created.status != http.StatusCreated || created.header.Get("ETag") == "" || created.header.Get("Content-Type") != "application/json" {
		t.Fatalf("create: %d %v %s", created.status, created.header, created.body)
	}
	path := created.header.Get("Location")
	read := a.do(http.MethodGet, path, "")
	if read.status != http.StatusOK || read.header.Get("ETag") != created.header.Get("ETag") || read.body != created.body {
		t.Errorf("read: %d %v %s, created %s", read.status, read.header, read.body, created.body)
	}
	var view map[string]any
	if err := json.Unmarshal([]byte(read.body), &view); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": path[len("/api/contacts/"):], "description": "A contact", "email": "jane@contoso.example",
		"name": map[string]any{"firstName": "Jane", "lastName": "Doe"},
		"company": map[string]any{
			"companyName": "Contoso", "street": "", "houseNumber": "", "postalCode": "", "city": "", "country": "",
		},
		"createdAt": "2026-11-21T12:00:00Z", "modifiedAt": nil, "version": 1.0,
	}
	if diff := cmp.Diff(want, view); diff != "" {
		t.Errorf("the view differs (-want +got):\n%s", diff)
	}

	etag := read.header.Get("ETag")
	for _, step := range []struct{ verb, body string }{
		{"update-name", `{"firstName":"Janet","lastName":"Roe"}`},
		{"update-description", `{"description":null}`},
		{"update-email", `{"email":"janet@contoso.example"}`},
		{"update-company", `{"companyName":"Fabrikam","street":"Main","houseNumber":"1a","postalCode":"12345","city":"Bern","country":"CH"}`},
	} {
		got := a.do(http.MethodPost, path+"/"+step.verb, step.body)
		if got.status != http.StatusNoContent || got.body != "" || got.header.Get("ETag") == "" || got.header.Get("ETag") == etag {
			t.Errorf("%s: %d %v %s", step.verb, got.status, got.header, got.body)
		}
		etag = got.header.Get("ETag")
	}
	read = a.do(http.MethodGet, path, "")
	for _, part := range []string{`"firstName":"Janet"`, `"description":null`, `"email":"janet@contoso.example"`, `"city":"Bern"`, `"version":5`} {
		if !strings.Contains(read.body, part) {
			t.Errorf("%s is missing from %s", part, read.body)
		}
	}
	for range 2 {
		if got := a.do(http.MethodDelete, path, ""); got.status != http.StatusNoContent || got.body != "" {
			t.Errorf("delete: %d %s", got.status, got.body)
		}
	}
	if got := a.do(http.MethodGet, path, ""); got.status != http.StatusNotFound || problemOf(t, got).Code != "contact_not_found" {
		t.Errorf("read after delete: %d %s", got.status, got.body)
	}
	wantActions := []string{
		"ContactCreatedEvent", "ContactNameUpdatedEvent", "ContactDescriptionUpdatedEvent", "ContactEmailUpdatedEvent",
		"ContactCompanyUpdatedEvent", "ContactDeletedEvent",
	}
	if !slices.Equal(a.memory.actions, wantActions) {
		t.Errorf("events %v", a.memory.actions)
	}
}

func TestInvalidBodiesAreRefused(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	for name, tc := range map[string]struct {
		path, body, contentType string
		status                  int
		code, pointers          string
	}{
		"malformed":       {"", `{"firstName":`, "", 400, "malformed_json", ""},
		"empty body":      {"", " ", "", 400, "malformed_json", ""},
		"two values":      {"", jane + jane, "", 400, "malformed_json", ""},
		"invalid UTF-8":   {"", "{\"firstName\":\"\xff\"}", "", 400, "malformed_json", ""},
		"lone surrogate":  {"", `{"firstName":"\ud800"}`, "", 400, "malformed_json", ""},
		"not an object":   {"", `[1]`, "", 422, "validation_failed", " /firstName /lastName /companyName"},
		"empty object":    {"", `{}`, "", 422, "validation_failed", "/firstName /lastName /companyName"},
		"empty name":      {"", `{"firstName":"","lastName":" ","companyName":"C"}`, "", 422, "validation_failed", "/firstName /lastName"},
		"unknown member":  {"", strings.Replace(jane, "{", `{"ttl":1,`, 1), "", 422, "validation_failed", "/ttl"},
		"named twice":     {"", strings.Replace(jane, "{", `{"email":null,`, 1), "", 422, "validation_failed", "/email"},
		"too deep":        {"", deep, "", 422, "validation_failed", strings.Repeat("/a", 16)},
		"all at once":     {"", `{"firstName":1,"lastName":"","email":"no","description":"` + strings.Repeat("x", 501) + `","company":"x"}`, "", 422, "validation_failed", "/firstName /company /companyName /lastName /email /description"},
		"control":         {"", strings.Replace(jane, "Jane", `Ja\u0000ne`, 1), "", 422, "validation_failed", "/firstName"},
		"too large":       {"", `{"firstName":"` + strings.Repeat("x", 70_000) + `"}`, "", 413, "body_too_large", ""},
		"no media type":   {"", jane, "text/plain", 415, "unsupported_media_type", ""},
		"wrong charset":   {"", jane, "application/json; charset=latin1", 415, "unsupported_media_type", ""},
		"empty rename":    {"/update-name", `{"firstName":"","lastName":""}`, "", 422, "validation_failed", "/firstName /lastName"},
		"no description":  {"/update-description", `{}`, "", 422, "validation_failed", "/description"},
		"empty email":     {"/update-email", `{"email":""}`, "", 422, "validation_failed", "/email"},
		"number as email": {"/update-email", `{"email":1}`, "", 422, "validation_failed", "/email"},
		"null company":    {"/update-company", `{"companyName":null,"city":null}`, "", 422, "validation_failed", "/companyName"},
	} {
		t.Run(name, func(t *testing.T) {
			target := "/api/contacts"
			if tc.path != "" {
				target = path + tc.path
			}
			if tc.contentType == "" {
				tc.contentType = "application/json"
			}
			got := a.do(http.MethodPost, target, tc.body, "Content-Type", tc.contentType)
			p := problemOf(t, got)
			if got.status != tc.status || p.Code != tc.code || p.pointers() != tc.pointers {
				t.Errorf("got %d %s [%s], want %d %s [%s]: %s", got.status, p.Code, p.pointers(), tc.status, tc.code, tc.pointers, got.body)
			}
		})
	}
	if len(a.memory.actions) != 1 {
		t.Errorf("a refused body made a change: %v", a.memory.actions)
	}
}

func TestLengthsAreInCharacters(t *testing.T) {
	a := start(t, nil)
	for n, want := range map[int]int{100: 201, 101: 422} {
		got := a.do(http.MethodPost, "/api/contacts", strings.Replace(jane, "Jane", strings.Repeat("😀", n), 1))
		if got.status != want {
			t.Errorf("%d characters of four bytes: %d %s", n, got.status, got.body)
		}
	}
}

func TestRouterAnswersWithProblems(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	for _, tc := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 404, "route_not_found", ""},
		{"GET", "/api/contact", 404, "route_not_found", ""},
		{"GET", "/api/contacts/", 404, "route_not_found", ""},
		{"GET", "//api/contacts", 404, "route_not_found", ""},
		{"GET", "/api/./contacts", 404, "route_not_found", ""},
		{"GET", "/api/contacts/not-a-guid", 404, "contact_not_found", ""},
		{"GET", "/api/contacts/{" + path[len("/api/contacts/"):] + "}", 404, "contact_not_found", ""},
		{"GET", "/api/contacts/00000000-0000-0000-0000-000000000000", 404, "contact_not_found", ""},
		{"GET", "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2", 404, "contact_not_found", ""},
		{"POST", "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2/update-nothing", 404, "route_not_found", ""},
		{"PUT", path, 405, "method_not_allowed", "DELETE, GET, HEAD, PATCH"},
		{"DELETE", "/api/contacts", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"OPTIONS", "/api/contacts", 405, "method_not_allowed", "GET, HEAD, POST"},
		{"GET", path + "/update-name", 405, "method_not_allowed", "POST"},
	} {
		got := a.do(tc.method, tc.path, "")
		p := problemOf(t, got)
		if got.status != tc.status || p.Code != tc.code || got.header.Get("Allow") != tc.allow {
			t.Errorf("%s %s: got %d %s %q, want %d %s %q", tc.method, tc.path, got.status, p.Code, got.header.Get("Allow"), tc.status, tc.code, tc.allow)
		}
	}
	if got := a.do(http.MethodHead, path, ""); got.status != 200 || got.body != "" || got.header.Get("ETag") == "" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %d %v", got.status, got.header)
	}
}

func TestAccept(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	for accept, want := range map[string]int{
		"application/json": 200, "*/*": 200, "application/*;q=0.1": 200, "text/html, application/json;q=0.5": 200, "": 200,
		"text/html": 406, "application/json;q=0, */*": 406, "application/problem+json": 406, "*/*;q=0": 406, "garbage;;;": 200,
	} {
		if got := a.do(http.MethodGet, path, "", "Accept", accept); got.status != want {
			t.Errorf("Accept %q: %d", accept, got.status)
		}
	}
	if got := a.do(http.MethodPost, path+"/update-email", `{"email":null}`, "Accept", "text/html"); got.status != 204 {
		t.Errorf("an answer without a body cannot be unacceptable: %d", got.status)
	}
}

func TestListPages(t *testing.T) {
	a := start(t, nil)
	want := map[string]bool{}
	for range 7 {
		path, _ := a.create()
		want[path[len("/api/contacts/"):]] = true
	}
	for _, follow := range []string{"header", "link"} {
		seen := map[string]bool{}
		next, headers := "/api/contacts?pageSize=3", []string(nil)
		pages := 0
		for next != "" {
			got := a.do(http.MethodGet, next, "", headers...)
			if got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			page := pageOf(t, got)
			pages++
			for _, item := range page.Items {
				if item.Email != "jane@contoso.example" || item.FullName != "Jane Doe" || item.CompanyName != "Contoso" || item.ETag == "" {
					t.Errorf("incomplete item %+v", item)
				}
				seen[item.ID] = true
			}
			if page.HasMore != (page.NextLink != "") || page.HasMore != (got.header.Get("X-Continuation-Token") != "") {
				t.Errorf("hasMore, nextLink and the header disagree: %s %v", got.body, got.header)
			}
			next, headers = "", nil
			if page.HasMore {
				if follow == "header" {
					next, headers = "/api/contacts?pageSize=3", []string{"x-continuation-token", got.header.Get("X-Continuation-Token")}
				} else {
					next = strings.TrimPrefix(page.NextLink, a.url)
				}
			}
		}
		if diff := cmp.Diff(want, seen); diff != "" || pages != 3 {
			t.Errorf("by %s: %d pages, contacts differ: %s", follow, pages, diff)
		}
	}
	if got := a.do(http.MethodGet, "/api/contacts", ""); !strings.Contains(got.body, `"hasMore":false`) || strings.Contains(got.body, "nextLink") {
		t.Errorf("single page: %s", got.body)
	}
}

func TestInvalidListingsAreRefused(t *testing.T) {
	a := start(t, nil)
	other := start(t, nil) // has another key
	for range 3 {
		a.create()
		other.create()
	}
	own := a.do(http.MethodGet, "/api/contacts?pageSize=1", "").header.Get("X-Continuation-Token")
	foreign := other.do(http.MethodGet, "/api/contacts?pageSize=1", "").header.Get("X-Continuation-Token")
	flipped := []byte(own)
	flipped[len(flipped)/2] ^= 1
	for name, tc := range map[string]struct{ query, token, code string }{
		"zero":          {"pageSize=0", "", "invalid_query"},
		"101":           {"pageSize=101", "", "invalid_query"},
		"not a number":  {"pageSize=ten", "", "invalid_query"},
		"twice":         {"pageSize=1&pageSize=2", "", "invalid_query"},
		"unknown":       {"pagesize=1", "", "invalid_query"},
		"malformed":     {"pageSize=%zz", "", "invalid_query"},
		"foreign token": {"", foreign, "invalid_continuation"},
		"flipped bit":   {"", string(flipped), "invalid_continuation"},
		"truncated":     {"", own[:len(own)-4], "invalid_continuation"},
		"raw":           {"", `{"compositeToken":"x"}`, "invalid_continuation"},
		"contradiction": {"continuationToken=x", own, "invalid_continuation"},
	} {
		got := a.do(http.MethodGet, "/api/contacts?"+tc.query, "", "x-continuation-token", tc.token)
		if p := problemOf(t, got); got.status != 400 || p.Code != tc.code {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := a.do(http.MethodGet, "/api/contacts?pageSize=1", "", "x-continuation-token", own); got.status != 200 {
		t.Errorf("own token: %d %s", got.status, got.body)
	}
}

func TestTokenKeysRotate(t *testing.T) {
	old, next := []byte(strings.Repeat("o", 32)), []byte(strings.Repeat("n", 32))
	before := start(t, &httpapi.Options{TokenKeys: [][]byte{old}})
	after := start(t, &httpapi.Options{TokenKeys: [][]byte{next, old}})
	for range 2 {
		before.create()
	}
	token := before.do(http.MethodGet, "/api/contacts?pageSize=1", "").header.Get("X-Continuation-Token")
	if got := after.do(http.MethodGet, "/api/contacts", "", "x-continuation-token", token); got.status != 200 {
		t.Errorf("a token of the previous key: %d %s", got.status, got.body)
	}
}

func TestSessionTokenIsPassedOn(t *testing.T) {
	a := start(t, nil)
	created := a.do(http.MethodPost, "/api/contacts", jane)
	token := created.header.Get("x-ms-session-token")
	if token == "" {
		t.Fatal("no session token on create")
	}
	path := created.header.Get("Location")
	a.do(http.MethodGet, path, "", "x-ms-session-token", token+"r")
	a.do(http.MethodGet, "/api/contacts", "", "x-ms-session-token", token+"l")
	updated := a.do(http.MethodPost, path+"/update-email", `{"email":null}`, "x-ms-session-token", token+"u")
	if updated.header.Get("x-ms-session-token") == "" {
		t.Error("no session token on update")
	}
	if want := []string{token + "r", token + "l", token + "u"}; !slices.Equal(a.memory.sessions, want) {
		t.Errorf("the application saw %v, want %v", a.memory.sessions, want)
	}
}
