package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"feedbox/application/mediator"
)

// perRequest bounds the bytes that a request with the worst body may allocate: about thirty
// times the length of the body.
const perRequest = 2 << 20

// TestHostileBodiesAllocateLittle sends bodies of 56 to 64 KB that are designed to allocate
// as much as possible before they are refused.
func TestHostileBodiesAllocateLittle(t *testing.T) {
	server, err := newServer(mediator.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const size = 64_000
	long := strings.Repeat("n", 20_000)
	fill := func(open, member, end string) string {
		count := (size - len(open) - len(end)) / (len(member) + 1)
		return open + strings.Repeat(member+",", count-1) + member + end
	}
	distinct := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, body := range map[string]string{
		"duplicates under a long name":  fill(`{"`+long+`":{`, `"a":1`, `}}`),
		"duplicates under nested names": fill(`{"`+strings.Repeat("n", 9000)+`":{"`+strings.Repeat("~", 9000)+`":{`, `"":0`, `}}}`),
		"duplicates":                    fill(`{`, `"":0`, `}`),
		"duplicates of a known member":  fill(`{`, `"email":0`, `}`),
		"unknown members":               `{` + distinct(`"%x":0,`, 6000) + `}`,
		"unknown members in a group":    `{"name":{` + distinct(`"%x":0,`, 6000) + `}}`,
		"an array of numbers":           fill(`{"email":[`, `0`, `]}`),
		"an array of arrays":            fill(`{"email":[`, `[]`, `]}`),
		"an array of objects":           fill(`{"email":[`, `{}`, `]}`),
		"an array of duplicates":        fill(`{"`+long+`":[`, `{"a":0,"a":0}`, `]}`),
		"deep under a long name":        `{"` + long + `":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"one long unknown name":         `{"` + strings.Repeat("~", 60_000) + `":0}`,
		"one long text":                 `{"email":"` + strings.Repeat(`é`, 9000) + `"}`,
		"escapes":                       `{"email":"` + strings.Repeat(`\u0001`, 9000) + `"}`,
	} {
		for _, tc := range []struct{ method, path, mediaType string }{
			{http.MethodPost, "/api/contacts", "application/json"},
			{http.MethodPost, "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2/update-email", "application/json"},
			{http.MethodPatch, "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2", "application/merge-patch+json"},
		} {
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(body))
			r.Header.Set("Content-Type", tc.mediaType)
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			server.Handler().ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			used := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s %s: %d bytes make %d KB, the answer has %d", tc.method, name, len(body), used>>10, w.Body.Len())
			if used > perRequest {
				t.Errorf("%s %s: a body of %d bytes costs %d KB, more than %d", tc.method, name, len(body), used>>10, perRequest>>10)
			}
			if w.Body.Len() > 128<<10 {
				t.Errorf("%s %s: the answer has %d bytes", tc.method, name, w.Body.Len())
			}
		}
	}
}
