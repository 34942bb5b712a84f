package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"feedbox/infrastructure/httpapi"
)

// A precondition is evaluated only if the request would succeed without it (RFC 9110
// §13.2.1). Each fault is sent alone and with failing preconditions; the answers must be
// equal.
func TestFaultsPrecedePreconditions(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, _ := a.create()
	false1, false2 := []string{"If-Match", `"stale"`}, []string{"If-None-Match", "*"}
	for _, verb := range []struct {
		method, path, mediaType, good, broken string
		preconditions                         [][]string
	}{
		{"POST", "/api/contacts", "application/json", jane, `{"firstName":"\u0000","lastName":"Doe","companyName":"Contoso"}`, [][]string{false1}},
		{"POST", path + "/update-name", "application/json", `{"firstName":"X","lastName":"Y"}`, `{"firstName":" ","lastName":"Y"}`, [][]string{false1, false2}},
		{"POST", path + "/update-description", "application/json", `{"description":"new"}`, `{"description":"\u0000"}`, [][]string{false1, false2}},
		{"POST", path + "/update-email", "application/json", `{"email":null}`, `{"email":"x"}`, [][]string{false1, false2}},
		{"POST", path + "/update-company", "application/json", `{"companyName":"X"}`, `{"companyName":""}`, [][]string{false1, false2}},
		{"PATCH", path, "application/merge-patch+json", `{"email":null}`, `{"email":"x"}`, [][]string{false1, false2}},
		{"DELETE", path, "", "", "", [][]string{false1, false2}},
	} {
		for _, precondition := range verb.preconditions {
			got := a.do(verb.method, verb.path, verb.good, append([]string{"Content-Type", verb.mediaType}, precondition...)...)
			if got.status != 412 {
				t.Errorf("%s %s, good, with %q: %d %s", verb.method, verb.path, precondition, got.status, got.body)
			}
			faults := map[string]struct {
				body, mediaType string
				headers         []string
				status          int
			}{
				"empty key":      {verb.good, verb.mediaType, []string{"Idempotency-Key", ""}, 400},
				"open key":       {verb.good, verb.mediaType, []string{"Idempotency-Key", `"open`}, 400},
				"blank key":      {verb.good, verb.mediaType, []string{"Idempotency-Key", `" "`}, 400},
				"long key":       {verb.good, verb.mediaType, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400},
				"key not ASCII":  {verb.good, verb.mediaType, []string{"Idempotency-Key", "ключ"}, 400},
				"two sessions":   {verb.good, verb.mediaType, []string{"x-ms-session-token", "0:-1#1", "x-ms-session-token", "0:-1#1"}, 400},
				"broken session": {verb.good, verb.mediaType, []string{"x-ms-session-token", "nonsense"}, 400},
				"broken body":    {verb.broken, verb.mediaType, nil, 422},
				"malformed body": {"{", verb.mediaType, nil, 400},
				"media type":     {verb.good, "text/plain", nil, 415},
			}
			for name, fault := range faults {
				if verb.method == http.MethodDelete && len(fault.headers) == 0 {
					continue
				}
				headers := append([]string{"Content-Type", fault.mediaType}, fault.headers...)
				for _, beside := range [][]string{nil, precondition} {
					if got := a.do(verb.method, verb.path, fault.body, append(headers, beside...)...); got.status != fault.status {
						t.Errorf("%s %s, %s, with %q: %d %s, want %d", verb.method, verb.path, name, beside, got.status, got.body, fault.status)
					}
				}
			}
		}
	}
}

// An id in upper case is not an address of the contact.
func TestContactHasOneAddress(t *testing.T) {
	a, _ := startEmulated(t, nil)
	for n := 0; ; n++ { // an id may have no letter, though hardly ever
		path, _ := a.create()
		id := path[len("/api/contacts/"):]
		if upper := strings.ToUpper(id); upper != id || n > 10 {
			for _, verb := range []struct{ method, path, body string }{
				{"GET", "", ""}, {"POST", "/update-email", `{"email":null}`}, {"DELETE", "", ""}, {"GET", "/audit", ""},
			} {
				if got := a.do(verb.method, "/api/contacts/"+upper+verb.path, verb.body); got.status != 404 {
					t.Errorf("%s %s: %d %s", verb.method, verb.path, got.status, got.body)
				}
			}
			return
		}
	}
}

// Headers that a client or a proxy sets do not appear in links.
func TestLinksIgnoreRequestHeaders(t *testing.T) {
	a := start(t, &httpapi.Options{AllowedHosts: []string{"evil.example"}})
	a.create()
	a.create()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.url+"/api/contacts?pageSize=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	r.Header.Set("X-Forwarded-Proto", "https")
	r.Header.Set("X-Forwarded-Host", "evil.example")
	response, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body := make([]byte, 4096)
	n, _ := response.Body.Read(body)
	page := pageOf(t, answer{response.StatusCode, response.Header, string(body[:n])})
	if !strings.HasPrefix(page.NextLink, "/api/contacts?") || strings.Contains(string(body[:n]), "evil") {
		t.Errorf("the link is %q", page.NextLink)
	}
	if next := a.do(http.MethodGet, page.NextLink, ""); next.status != 200 || len(pageOf(t, next).Items) != 1 {
		t.Errorf("the link leads to %d %s", next.status, next.body)
	}
}
