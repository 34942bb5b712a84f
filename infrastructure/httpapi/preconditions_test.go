package httpapi_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"feedbox/application/command"
	"feedbox/application/query"
	"feedbox/infrastructure/httpapi"
)

func TestConditionalRead(t *testing.T) {
	a := start(t, nil)
	path, etag := a.create()
	for name, tc := range map[string]struct {
		headers []string
		status  int
	}{
		"none":                    {nil, 200},
		"same":                    {[]string{"If-None-Match", etag}, 304},
		"same, weak":              {[]string{"If-None-Match", "W/" + etag}, 304},
		"other":                   {[]string{"If-None-Match", `"other"`}, 200},
		"any":                     {[]string{"If-None-Match", "*"}, 304},
		"in a list":               {[]string{"If-None-Match", `"a", W/"b" ,,` + etag}, 304},
		"not in a list":           {[]string{"If-None-Match", `"a", "b"`}, 200},
		"on two lines":            {[]string{"If-None-Match", `"a"`, "If-None-Match", etag}, 304},
		"match":                   {[]string{"If-Match", etag}, 200},
		"match any":               {[]string{"If-Match", "*"}, 200},
		"match fails":             {[]string{"If-Match", `"other"`}, 412},
		"match weak fails":        {[]string{"If-Match", "W/" + etag}, 412},
		"match and none-match":    {[]string{"If-Match", etag, "If-None-Match", etag}, 304},
		"legacy":                  {[]string{"ETag", etag}, 304},
		"legacy without quotes":   {[]string{"ETag", strings.Trim(etag, `"`)}, 304},
		"legacy other":            {[]string{"ETag", `"other"`}, 200},
		"legacy beside standard":  {[]string{"ETag", etag, "If-None-Match", etag}, 400},
		"legacy, empty":           {[]string{"ETag", ""}, 400},
		"legacy, a list":          {[]string{"ETag", `"a", ` + etag}, 400},
		"legacy too long":         {[]string{"ETag", strings.Repeat("x", 51)}, 400},
		"unquoted":                {[]string{"If-None-Match", "abc"}, 400},
		"unterminated":            {[]string{"If-None-Match", `"abc`}, 400},
		"empty":                   {[]string{"If-None-Match", ""}, 400},
		"no comma":                {[]string{"If-None-Match", `"a" "b"`}, 400},
		"star in a list":          {[]string{"If-None-Match", `*, "a"`}, 400},
		"too long":                {[]string{"If-None-Match", `"` + strings.Repeat("x", 49) + `"`}, 400},
		"too many":                {[]string{"If-None-Match", strings.Repeat(`"a",`, 33)}, 400},
		"malformed If-Match":      {[]string{"If-Match", `W/abc`}, 400},
		"lower-case weak is none": {[]string{"If-None-Match", `w/` + etag}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			got := a.do(http.MethodGet, path, "", tc.headers...)
			if got.status != tc.status {
				t.Fatalf("got %d %s, want %d", got.status, got.body, tc.status)
			}
			switch got.status {
			case 304:
				if got.body != "" || got.header.Get("ETag") != etag || got.header.Get("Content-Type") != "" || got.header.Get("Cache-Control") != "private, no-cache" {
					t.Errorf("304 with body %q, headers %v", got.body, got.header)
				}
			case 400, 412:
				problemOf(t, got)
			}
		})
	}
}

// TestConditionalWrite sends each precondition with each change of a contact. A refused
// change must not write.
func TestConditionalWrite(t *testing.T) {
	a := start(t, nil)
	for name, tc := range map[string]struct {
		headers func(etag string) []string
		status  int
	}{
		"none":                   {func(string) []string { return nil }, 204},
		"match":                  {func(e string) []string { return []string{"If-Match", e} }, 204},
		"match any":              {func(string) []string { return []string{"If-Match", "*"} }, 204},
		"match in a list":        {func(e string) []string { return []string{"If-Match", `"a", ` + e} }, 204},
		"legacy":                 {func(e string) []string { return []string{"ETag", e} }, 204},
		"stale":                  {func(string) []string { return []string{"If-Match", `"stale"`} }, 412},
		"stale list":             {func(string) []string { return []string{"If-Match", `"stale", "staler"`} }, 412},
		"weak":                   {func(e string) []string { return []string{"If-Match", "W/" + e} }, 412},
		"legacy stale":           {func(string) []string { return []string{"ETag", `"stale"`} }, 412},
		"none-match any":         {func(string) []string { return []string{"If-None-Match", "*"} }, 412},
		"none-match same":        {func(e string) []string { return []string{"If-None-Match", "W/" + e} }, 412},
		"none-match other":       {func(string) []string { return []string{"If-None-Match", `"other"`} }, 204},
		"both hold":              {func(e string) []string { return []string{"If-Match", e, "If-None-Match", `"other"`} }, 204},
		"first fails":            {func(string) []string { return []string{"If-Match", `"stale"`, "If-None-Match", `"other"`} }, 412},
		"malformed":              {func(string) []string { return []string{"If-Match", "nonsense"} }, 400},
		"malformed none-match":   {func(string) []string { return []string{"If-None-Match", "nonsense"} }, 400},
		"legacy beside If-Match": {func(e string) []string { return []string{"If-Match", e, "ETag", e} }, 400},
	} {
		for _, verb := range []struct{ method, path, body string }{
			{"POST", "/update-name", `{"firstName":"X","lastName":"Y"}`},
			{"POST", "/update-description", `{"description":"new"}`},
			{"POST", "/update-email", `{"email":null}`},
			{"POST", "/update-company", `{"companyName":"X"}`},
			{"DELETE", "", ""},
		} {
			t.Run(name+" "+verb.method+verb.path, func(t *testing.T) {
				path, etag := a.create()
				writes := a.memory.writes
				got := a.do(verb.method, path+verb.path, verb.body, tc.headers(etag)...)
				if got.status != tc.status {
					t.Fatalf("got %d %s, want %d", got.status, got.body, tc.status)
				}
				if got.status != 204 {
					problemOf(t, got)
					if a.memory.writes != writes {
						t.Error("a refused change was written")
					}
				}
			})
		}
	}
}

// A deleted contact has no state to compare, so the answer is the one without a precondition
// (RFC 9110 §13.2.1).
func TestDeletedContactIgnoresPreconditions(t *testing.T) {
	a, _ := startEmulated(t, nil)
	for name, headers := range map[string][]string{
		"none": nil, "stale": {"If-Match", `"stale"`}, "any": {"If-Match", "*"}, "legacy": {"ETag", `"stale"`},
		"none-match": {"If-None-Match", "*"}, "none-match other": {"If-None-Match", `"other"`}, "keyed": {"If-Match", `"stale"`, "Idempotency-Key", "k"},
	} {
		path, etag := a.create()
		a.do(http.MethodDelete, path, "")
		if name == "stale" {
			headers = []string{"If-Match", etag}
		}
		for _, verb := range []struct {
			method, path, body, mediaType string
			status                        int
		}{
			{"POST", "/update-name", `{"firstName":"X","lastName":"Y"}`, "application/json", 404},
			{"POST", "/update-description", `{"description":"new"}`, "application/json", 404},
			{"POST", "/update-email", `{"email":null}`, "application/json", 404},
			{"POST", "/update-company", `{"companyName":"X"}`, "application/json", 404},
			{"PATCH", "", `{"email":null}`, "application/merge-patch+json", 404},
			{"GET", "", "", "", 404},
			{"DELETE", "", "", "", 204},
		} {
			if verb.method == "GET" && name == "keyed" {
				continue
			}
			if got := a.do(verb.method, path+verb.path, verb.body, append([]string{"Content-Type", verb.mediaType}, headers...)...); got.status != verb.status {
				t.Errorf("%s: %s %s: %d %s, want %d", name, verb.method, verb.path, got.status, got.body, verb.status)
			}
		}
	}
}

func TestPreconditionsOfCreate(t *testing.T) {
	a := start(t, nil)
	for _, tc := range []struct {
		name, value string
		status      int
	}{
		{"If-Match", "*", 412},
		{"If-Match", `"a"`, 412},
		{"If-None-Match", "*", 201},
		{"If-None-Match", `"a"`, 201},
		{"If-None-Match", "a", 400},
		{"ETag", `"a"`, 201}, // the original sample knows no precondition here
	} {
		if got := a.do(http.MethodPost, "/api/contacts", jane, tc.name, tc.value); got.status != tc.status {
			t.Errorf("%s %s: %d %s", tc.name, tc.value, got.status, got.body)
		}
	}
}

func TestRequirePrecondition(t *testing.T) {
	a := start(t, &httpapi.Options{RequirePrecondition: true})
	path, etag := a.create()
	for _, verb := range []struct{ method, path, body string }{
		{"POST", path + "/update-name", `{"firstName":"X","lastName":"Y"}`},
		{"POST", path + "/update-description", `{"description":"new"}`},
		{"POST", path + "/update-email", `{"email":null}`},
		{"POST", path + "/update-company", `{"companyName":"X"}`},
		{"DELETE", path, ""},
	} {
		got := a.do(verb.method, verb.path, verb.body)
		if p := problemOf(t, got); got.status != 428 || p.Code != "precondition_required" {
			t.Errorf("%s %s: %d %s", verb.method, verb.path, got.status, got.body)
		}
		if got = a.do(verb.method, verb.path, verb.body, "If-None-Match", `"other"`); got.status != 428 {
			t.Errorf("%s %s with If-None-Match alone: %d %s", verb.method, verb.path, got.status, got.body)
		}
		got = a.do(verb.method, verb.path, verb.body, "If-Match", etag)
		if got.status != 204 {
			t.Errorf("%s %s with If-Match: %d %s", verb.method, verb.path, got.status, got.body)
		}
		if next := got.header.Get("ETag"); next != "" {
			etag = next
		}
	}
}

// Another writer changes the contact between comparison and change. The change must then
// fail, because the new state was not compared.
func TestIfNoneMatchHoldsUntilTheWrite(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	a.memory.queried = func() { a.do(http.MethodPost, path+"/update-email", `{"email":null}`) }
	got := a.do(http.MethodPost, path+"/update-name", `{"firstName":"X","lastName":"Y"}`, "If-None-Match", `"other"`)
	if got.status != 412 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if read := a.do(http.MethodGet, path, ""); strings.Contains(read.body, `"X"`) || !strings.Contains(read.body, `"email":null`) {
		t.Errorf("the contact is %s", read.body)
	}
}

// A precondition reaches the application in a form that a store can compare. A change with
// If-None-Match is bound to the compared ETag, and continues the session of the comparison.
func TestPreconditionsReachTheApplication(t *testing.T) {
	var read query.Read
	var target command.Target
	a := start(t, nil)
	a.serve(must(t, httpapi.Resource{Noun: "thing", Routes: []httpapi.Route{
		httpapi.Read(httpapi.Operation{}, func(_ context.Context, in query.Read) (httpapi.Found[thing], error) {
			read = in
			return httpapi.Found[thing]{ETag: `"v7"`, SessionToken: "0:-1#7"}, nil
		}),
		httpapi.Delete(httpapi.Operation{}, func(_ context.Context, in command.Target) (command.Updated, error) {
			target = in
			return command.Updated{}, nil
		}),
	}}))
	const path = "/api/things/b5e2e7aa-4982-4735-9422-c39a7c4af5c2"
	for sent, want := range map[string][]string{`"v6"`: {`"v6"`}, `W/"v6"`: {`"v6"`}, `"v5", "v6"`: nil} {
		if got := a.do(http.MethodGet, path, "", "If-None-Match", sent, "x-ms-session-token", "0:-1#3"); got.status != 200 || !slices.Equal(read.IfNoneMatch, want) || read.SessionToken != "0:-1#3" {
			t.Errorf("%s: %d; read with If-None-Match %q, session %q", sent, got.status, read.IfNoneMatch, read.SessionToken)
		}
	}
	got := a.do(http.MethodDelete, path, "", "If-None-Match", `"v6"`, "x-ms-session-token", "0:-1#3")
	if got.status != 204 || !slices.Equal(target.IfMatch, []string{`"v7"`}) || target.SessionToken != "0:-1#7" {
		t.Errorf("%d; the change has If-Match %q, session %q; want the compared state", got.status, target.IfMatch, target.SessionToken)
	}
}
