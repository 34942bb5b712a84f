package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// TestReferenceBehaviour checks the behaviour that clients of the original sample
// (mspnp/transactional-outbox-pattern, .NET) rely on. Each row has the original answer. If
// this API differs on purpose, differs has the reason; DECISIONS.md lists them.
func TestReferenceBehaviour(t *testing.T) {
	a, emulator := startEmulated(t, nil)
	contact := func() (string, string) { return a.create() }
	post := func(verb string, body string, headers ...string) func() answer {
		return func() answer {
			path, _ := contact()
			return a.do(http.MethodPost, path+verb, body, headers...)
		}
	}
	createWith := func(old, replacement string) func() answer {
		return func() answer {
			return a.do(http.MethodPost, "/api/contacts", strings.Replace(jane, old, replacement, 1))
		}
	}
	get := func(path string, headers ...string) func() answer {
		return func() answer { return a.do(http.MethodGet, path, "", headers...) }
	}
	twice := func(method string) func() answer {
		return func() answer {
			path, _ := contact()
			a.do(method, path, "")
			return a.do(method, path, "")
		}
	}
	for _, row := range []struct {
		what    string
		send    func() answer
		theirs  int // status of the original
		ours    int // 0: the same
		differs string
	}{
		{"create", func() answer { return a.do(http.MethodPost, "/api/contacts", jane) }, 201, 0, ""},
		{"create without the optional members", func() answer {
			return a.do(http.MethodPost, "/api/contacts", `{"firstName":"J","lastName":"D","companyName":"C"}`)
		}, 201, 0, ""},
		{"read", func() answer { path, _ := contact(); return get(path)() }, 200, 0, ""},
		{"read with the ETag that is current", func() answer { path, etag := contact(); return get(path, "ETag", etag)() }, 304, 0, ""},
		{"read with another ETag", func() answer { path, _ := contact(); return get(path, "ETag", `"other"`)() }, 200, 0, ""},
		{"read an unknown id", get("/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2"), 404, 0, ""},
		{"read with an invalid GUID", get("/api/contacts/7"), 404, 0, ""},
		{"read a deleted contact", func() answer {
			path, _ := contact()
			a.do(http.MethodDelete, path, "")
			return get(path)()
		}, 404, 0, ""},
		{"read with a GUID without dashes", func() answer {
			path, _ := contact()
			return get("/api/contacts/" + strings.ReplaceAll(path[len("/api/contacts/"):], "-", ""))()
		}, 200, 404, "one address for one contact: caches and logs see one name"},
		{"another case of the path", get("/API/Contacts"), 200, 404, "paths are compared as they are written, as RFC 3986 says"},
		{"a slash at the end", get("/api/contacts/"), 200, 404, "one address for one thing"},
		{"list", get("/api/contacts"), 200, 0, ""},
		{"list, page size 100", get("/api/contacts?pageSize=100"), 200, 0, ""},
		{"list, page size 0", get("/api/contacts?pageSize=0"), 400, 0, ""},
		{"list, page size 101", get("/api/contacts?pageSize=101"), 200, 400, "a ceiling keeps one request from reading everything"},
		{"list, broken token", get("/api/contacts", "x-continuation-token", "x"), 500, 400, "the client's mistake; tokens are sealed here"},
		{"list, unknown parameter", get("/api/contacts?pagesiz=5"), 200, 400, "a misspelt parameter would be ignored in silence"},
		{"rename", post("/update-name", `{"firstName":"X","lastName":"Y"}`), 204, 0, ""},
		{"describe", post("/update-description", `{"description":"x"}`), 204, 0, ""},
		{"remove the description", post("/update-description", `{"description":null}`), 204, 0, ""},
		{"empty the description", post("/update-description", `{"description":""}`), 204, 0, ""},
		{"change the e-mail", post("/update-email", `{"email":"a@b.example"}`), 204, 0, ""},
		{"remove the e-mail", post("/update-email", `{"email":null}`), 204, 0, ""},
		{"change the company", post("/update-company", `{"companyName":"C","street":"S","houseNumber":"1","postalCode":"2","city":"T","country":"CH"}`), 204, 0, ""},
		{"change the company, name only", post("/update-company", `{"companyName":"C","street":null}`), 204, 0, ""},
		{"update with the current ETag", func() answer {
			path, etag := contact()
			return a.do(http.MethodPost, path+"/update-email", `{"email":null}`, "ETag", etag)
		}, 204, 0, ""},
		{"update with a stale ETag", post("/update-email", `{"email":null}`, "ETag", `"stale"`), 412, 0, ""},
		{"delete with a stale ETag", func() answer {
			path, _ := contact()
			return a.do(http.MethodDelete, path, "", "ETag", `"stale"`)
		}, 412, 0, ""},
		{"an ETag of 51 characters", post("/update-email", `{"email":null}`, "ETag", `"`+strings.Repeat("x", 49)+`"`), 400, 0, ""},
		{"update with a stale If-Match", post("/update-email", `{"email":null}`, "If-Match", `"stale"`), 204, 412, "a precondition is never ignored (RFC 9110 §13)"},
		{"read with If-None-Match", func() answer { path, etag := contact(); return get(path, "If-None-Match", etag)() }, 200, 304, "a precondition is never ignored (RFC 9110 §13)"},
		{"delete", func() answer { path, _ := contact(); return a.do(http.MethodDelete, path, "") }, 200, 204, "there is nothing to say in a body"},
		{"delete again", twice(http.MethodDelete), 200, 204, "as above; and no second event"},
		{"update a deleted contact", func() answer {
			path, _ := contact()
			a.do(http.MethodDelete, path, "")
			return a.do(http.MethodPost, path+"/update-email", `{"email":null}`)
		}, 404, 0, ""},

		{"empty first name", createWith("Jane", ""), 400, 422, content},
		{"blank last name", createWith("Doe", " "), 400, 422, content},
		{"first name of 100", createWith("Jane", strings.Repeat("x", 100)), 201, 0, ""},
		{"first name of 101", createWith("Jane", strings.Repeat("x", 101)), 400, 422, content},
		{"first name of 51 emoji", createWith("Jane", strings.Repeat("😀", 51)), 400, 201, "lengths are in characters, not in UTF-16 units"},
		{"a control character", createWith("Jane", `J\u0000`), 201, 422, "control characters have no place in a name"},
		{"e-mail without @", createWith("jane@", "jane"), 400, 422, content},
		{"e-mail, @ first", createWith("jane@", "@"), 400, 422, content},
		{"e-mail, two @", createWith("jane@", "ja@ne@"), 400, 422, content},
		{"e-mail with a space", createWith("jane@", "ja ne@"), 201, 422, "an address is parsed, not only searched for an @"},
		{"e-mail of 255", createWith("jane@", strings.Repeat("x", 240)+"@"), 201, 422, "no mail system takes it (RFC 5321 §4.5.3.1)"},
		{"empty e-mail", createWith("jane@contoso.example", ""), 400, 422, content},
		{"e-mail null", createWith(`"jane@contoso.example"`, "null"), 201, 0, ""},
		{"description of 500", createWith("A contact", strings.Repeat("x", 500)), 201, 0, ""},
		{"description of 501", createWith("A contact", strings.Repeat("x", 501)), 400, 422, content},
		{"company name of 251", createWith("Contoso", strings.Repeat("x", 251)), 400, 422, content},
		{"empty company name", createWith("Contoso", ""), 400, 422, content},
		{"house number of 11", post("/update-company", `{"companyName":"C","houseNumber":"12345678901"}`), 400, 422, content},
		{"postal code of 26", post("/update-company", `{"companyName":"C","postalCode":"`+strings.Repeat("1", 26)+`"}`), 400, 422, content},
		{"update-description without the member", post("/update-description", `{}`), 204, 422, "an empty body is more likely a mistake than the wish to erase"},
		{"update-email without the member", post("/update-email", `{}`), 204, 422, "as above"},
		{"an unknown member", createWith(`"firstName"`, `"nickname":"J","firstName"`), 201, 422, "a misspelt member would be ignored in silence"},
		{"a member named twice", createWith(`"firstName"`, `"firstName":"J","firstName"`), 201, 422, "which of the two is meant is anybody's guess"},
		{"a member in another case", createWith(`"firstName"`, `"FirstName"`), 201, 422, "names are compared as they are written"},
		{"malformed JSON", func() answer { return a.do(http.MethodPost, "/api/contacts", "{") }, 400, 0, ""},
		{"another media type", func() answer { return a.do(http.MethodPost, "/api/contacts", jane, "Content-Type", "text/plain") }, 415, 0, ""},
		{"a wrong type", createWith(`"Jane"`, "1"), 400, 422, content},

		{"the store throttles", func() answer {
			path, _ := contact()
			defer emulator.Control(cosmosemu.OpReadItem, cosmosemu.Always(cosmosemu.Throttled(60e9)))()
			return get(path)()
		}, 500, 429, "the client can wait, if it is told so"},
		{"the store is away", func() answer {
			path, _ := contact()
			defer emulator.Control(cosmosemu.OpReadItem, cosmosemu.Always(cosmosemu.Unavailable()))()
			return get(path)()
		}, 500, 503, "the client can try again"},
		{"documentation", get("/swagger"), 200, 404, "it is at /docs, and at /openapi.json for programs"},
	} {
		t.Run(row.what, func(t *testing.T) {
			if (row.ours != 0) != (row.differs != "") || row.ours == row.theirs {
				t.Fatal("a difference needs another status and a reason")
			}
			want := row.ours
			if want == 0 {
				want = row.theirs
			}
			got := row.send()
			if got.status != want {
				t.Errorf("%d %s, want %d", got.status, got.body, want)
			}
			if got.status >= 400 {
				problemOf(t, got)
			}
		})
	}
}

// content is the reason why most faults of content differ from the original.
const content = "one status for all faults of content, which are reported together; 400 is for malformed bodies (RFC 9110 §15.5.21)"

// TestReferenceShapes checks the members and headers that clients of the original read.
// Additional ones are allowed.
func TestReferenceShapes(t *testing.T) {
	a, _ := startEmulated(t, nil)
	created := a.do(http.MethodPost, "/api/contacts", jane)
	path := created.header.Get("Location")
	if path == "" {
		t.Fatal("no Location")
	}
	read := a.do(http.MethodGet, path, "")
	if members := membersOf(t, read.body); !containsAll(members, "id", "description", "email", "name.firstName", "name.lastName",
		"company.companyName", "company.street", "company.houseNumber", "company.postalCode", "company.city", "company.country") {
		t.Errorf("a contact has %v", members)
	}
	if etag := read.header.Get("ETag"); !strings.HasPrefix(etag, `"`) || !strings.HasSuffix(etag, `"`) {
		t.Errorf("the ETag is %s", etag)
	}
	a.create()
	list := a.do(http.MethodGet, "/api/contacts?pageSize=1", "")
	var page struct {
		HasMore *bool
		Items   []map[string]any
	}
	if err := json.Unmarshal([]byte(list.body), &page); err != nil || page.HasMore == nil || !*page.HasMore || list.header.Get("X-Continuation-Token") == "" {
		t.Fatalf("list: %v %v %s", err, list.header, list.body)
	}
	for _, name := range []string{"id", "email", "fullName", "companyName"} {
		if page.Items[0][name] == nil {
			t.Errorf("an item has no %s: %s", name, list.body)
		}
	}
	for _, body := range []struct{ verb, text string }{
		{"/update-name", `{"firstName":"X","lastName":"Y"}`}, {"/update-company", `{"companyName":"X"}`},
	} {
		if got := a.do(http.MethodPost, path+body.verb, body.text); got.header.Get("ETag") == "" || got.body != "" {
			t.Errorf("%s: %v %q", body.verb, got.header, got.body)
		}
	}
	if read := a.do(http.MethodGet, path, ""); !strings.Contains(read.body, `"street":""`) {
		t.Errorf("the company is not replaced as a whole: %s", read.body)
	}
}

// membersOf lists the members of an object; nested members as a.b.
func membersOf(t *testing.T, body string) []string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, value := range object {
		names = append(names, name)
		if inner, ok := value.(map[string]any); ok {
			for within := range inner {
				names = append(names, name+"."+within)
			}
		}
	}
	return names
}

func containsAll(list []string, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}
