package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"feedbox/infrastructure/httpapi"
)

func TestRepeatedCreateIsReplayed(t *testing.T) {
	a, _ := startEmulated(t, nil)
	create := func(key, body string) answer {
		return a.do(http.MethodPost, "/api/contacts", body, "Idempotency-Key", key)
	}
	first := create("key-1", jane)
	path := first.header.Get("Location")
	if first.status != 201 || first.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("%d %v", first.status, first.header)
	}
	for _, key := range []string{"key-1", `"key-1"`, ` "key-1" `} {
		again := create(key, jane)
		if again.status != 200 || again.body != first.body || again.header.Get("Location") != path ||
			again.header.Get("ETag") != first.header.Get("ETag") || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %d %v %s", key, again.status, again.header, again.body)
		}
	}
	// The same content in another notation.
	if got := create("key-1", "  "+strings.Replace(jane, `"Jane"`, `"\u004aane"`, 1)); got.status != 200 {
		t.Errorf("the same content: %d %s", got.status, got.body)
	}
	other := create("key-1", strings.Replace(jane, "Jane", "Janet", 1))
	if p := problemOf(t, other); other.status != 422 || p.Code != "idempotency_key_reused" {
		t.Errorf("another content: %d %s", other.status, other.body)
	}
	if got := create("key-2", jane); got.status != 201 || got.header.Get("Location") == path {
		t.Errorf("another key: %d %v", got.status, got.header)
	}
	a.do(http.MethodPost, path+"/update-name", `{"firstName":"Janet","lastName":"Roe"}`)
	if got := create("key-1", jane); got.status != 200 || !strings.Contains(got.body, "Janet") || got.header.Get("ETag") != "" {
		t.Errorf("after a change: %d %v %s; want no ETag, it is that of another's change", got.status, got.header, got.body)
	}
	a.do(http.MethodDelete, path, "")
	if got := create("key-1", jane); got.status != 410 || problemOf(t, got).Code != "contact_deleted" {
		t.Errorf("after the deletion: %d %s", got.status, got.body)
	}
}

func TestRepeatedChangeIsReplayed(t *testing.T) {
	a, _ := startEmulated(t, nil)
	for _, verb := range []struct{ method, path, body, contentType, other string }{
		{"POST", "/update-name", `{"firstName":"X","lastName":"Y"}`, "application/json", `{"firstName":"X","lastName":"Z"}`},
		{"POST", "/update-description", `{"description":"new"}`, "application/json", `{"description":null}`},
		{"POST", "/update-email", `{"email":null}`, "application/json", `{"email":"x@y.example"}`},
		{"POST", "/update-company", `{"companyName":"X"}`, "application/json", `{"companyName":"X","city":"Y"}`},
		{"PATCH", "", `{"name":{"firstName":"X"}}`, "application/merge-patch+json", `{"name":{"firstName":"Z"}}`},
		{"DELETE", "", "", "application/json", ""},
	} {
		path, etag := a.create()
		send := func(body string) answer {
			return a.do(verb.method, path+verb.path, body, "Content-Type", verb.contentType, "Idempotency-Key", "k", "If-Match", etag)
		}
		first := send(verb.body)
		again := send(verb.body) // its If-Match is stale by its own doing
		if first.status/100 != 2 || again.status != first.status || first.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%s %s: %d %s, then %d %s", verb.method, verb.path, first.status, first.body, again.status, again.body)
		}
		if verb.method == "DELETE" {
			continue // deleting twice is nothing special
		}
		if again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("ETag") != first.header.Get("ETag") || again.body != first.body {
			t.Errorf("%s %s: the repeat is answered with %v %s", verb.method, verb.path, again.header, again.body)
		}
		a.do(http.MethodPost, path+"/update-company", `{"companyName":"Another"}`)
		if got := send(verb.body); got.status != first.status || got.header.Get("Idempotency-Replayed") != "true" || got.header.Get("ETag") != "" {
			t.Errorf("%s %s: after another client's change the repeat is answered with %d %v; with that ETag the client would overwrite a change it has not seen",
				verb.method, verb.path, got.status, got.header)
		}
		if got := send(verb.other); got.status != 422 || problemOf(t, got).Code != "idempotency_key_reused" {
			t.Errorf("%s %s, another content: %d %s", verb.method, verb.path, got.status, got.body)
		}
		if got := a.do(http.MethodGet, path, ""); !strings.Contains(got.body, `"version":3}`) {
			t.Errorf("%s %s was done twice: %s", verb.method, verb.path, got.body)
		}
	}
}

// A key names one request. Otherwise a client that reuses one by mistake believes that its second change is done.
func TestKeyOfAnotherVerbOfTheContactIsRefused(t *testing.T) {
	a, _ := startEmulated(t, nil)
	verbs := []struct{ method, path, body, contentType string }{
		{"POST", "/update-name", `{"firstName":"Jane","lastName":"Doe"}`, "application/json"}, // may change nothing
		{"POST", "/update-description", `{"description":"new"}`, "application/json"},
		{"POST", "/update-email", `{"email":null}`, "application/json"},
		{"POST", "/update-company", `{"companyName":"X"}`, "application/json"},
		{"PATCH", "", `{"name":{"firstName":"X"}}`, "application/merge-patch+json"},
		{"PATCH", "", `{}`, "application/merge-patch+json"},
		{"DELETE", "", "", "application/json"},
	}
	for i, first := range verbs {
		for j, second := range verbs {
			for k, ifMatch := range []string{"*", `"stale"`} {
				key := fmt.Sprint("create-", i, j, k)
				created := a.do(http.MethodPost, "/api/contacts", jane, "Idempotency-Key", key)
				path := created.header.Get("Location")
				send := func(v int, key, ifMatch string) answer {
					return a.do(verbs[v].method, path+verbs[v].path, verbs[v].body, "Content-Type", verbs[v].contentType, "Idempotency-Key", key, "If-Match", ifMatch)
				}
				if got := send(i, key, ifMatch); got.status != 422 {
					t.Errorf("%s %s under the key of the creation: %d %s", first.method, first.path, got.status, got.body)
				}
				if got := send(i, "k", "*"); got.status/100 != 2 {
					t.Fatalf("%s %s: %d %s", first.method, first.path, got.status, got.body)
				}
				if got := send(j, "k", ifMatch); i != j && got.status != 422 || i == j && got.status/100 != 2 {
					t.Errorf("%s %s %s, then %s %s %s under its key, If-Match %s: %d %s", first.method, first.path, first.body, second.method, second.path, second.body, ifMatch, got.status, got.body)
				}
			}
		}
	}
}

func TestIdempotencyKeyForms(t *testing.T) {
	a, _ := startEmulated(t, nil)
	for key, want := range map[string]int{
		"plain":                         201,
		`"quoted"`:                      201,
		`"with \" and \\ in it"`:        201,
		`with space`:                    201,
		strings.Repeat("k", 255):        201,
		"":                              400,
		" ":                             400,
		`""`:                            400,
		`"open`:                         400,
		`"a"b`:                          400,
		`a"b`:                           400,
		`"bad \n escape"`:               400,
		strings.Repeat("k", 256):        400,
		"\"caf\xc3\xa9\"":               400, // beyond the draft's strings
		"\xff\xfe":                      400,
		"key, with, commas; and=others": 201,
	} {
		got := a.do(http.MethodPost, "/api/contacts", jane, "Idempotency-Key", key)
		if got.status != want {
			t.Errorf("key %q: %d %s", key, got.status, got.body)
		}
		if got.status == 400 && problemOf(t, got).Code != "invalid_idempotency_key" {
			t.Errorf("key %q: %s", key, got.body)
		}
	}
	if got := a.do(http.MethodPost, "/api/contacts", jane, "Idempotency-Key", "a", "Idempotency-Key", "b"); got.status != 400 {
		t.Errorf("two keys: %d", got.status)
	}
}

func TestIdempotencyKeysArePerPrincipal(t *testing.T) {
	a, _ := startEmulated(t, &httpapi.Options{Auth: twoWriters(t)})
	create := func(caller string) answer {
		return a.do(http.MethodPost, "/api/contacts", jane, "Idempotency-Key", "k", "x-api-key", caller)
	}
	first, other, again := create("key-a"), create("key-b"), create("key-a")
	if first.status != 201 || other.status != 201 || again.status != 200 || first.header.Get("Location") == other.header.Get("Location") {
		t.Errorf("%d %v, %d %v, %d", first.status, first.header, other.status, other.header, again.status)
	}
}

// Of many concurrent requests with the same key, one creates and all others are replays.
func TestConcurrentRepeatsCreateOnce(t *testing.T) {
	a, _ := startEmulated(t, nil)
	var created, replayed atomic.Int64
	var all sync.WaitGroup
	for n := range 8 {
		key := "key-" + string(rune('a'+n))
		for range 8 {
			all.Go(func() {
				switch got := a.do(http.MethodPost, "/api/contacts", jane, "Idempotency-Key", key); got.status {
				case 201:
					created.Add(1)
				case 200:
					replayed.Add(1)
				default:
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
	}
	all.Wait()
	if created.Load() != 8 || replayed.Load() != 56 {
		t.Errorf("%d were created, %d replayed; want 8 and 56", created.Load(), replayed.Load())
	}
	if page := pageOf(t, a.do(http.MethodGet, "/api/contacts?pageSize=100", "")); len(page.Items) != 8 {
		t.Errorf("%d contacts are stored", len(page.Items))
	}
}
