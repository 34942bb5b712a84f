package pairs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"feedbox/tests/testkit"
)

// On every pair, clients, operator commands and a consumer get the same results.
func TestPairs(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, s storeKind, b brokerKind) {
		t.Parallel() // before the servers start, because each is waited for
		w := newWorld(t, s.open(t), b.open(t))
		w.relays = append(w.relays, w.relay(t))
		key := w.walk(t)
		w.concurrent(t)
		w.pages(t)
		w.judge(t, nil)
		w.verbs(t, key)
		w.judge(t, nil)
		w.parked(t)
	})
}

// answer is a response of the API.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

// call sends a request to the API; headers are name, value, name, value.
func (w *world) call(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.api+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultClient.Do(r)
	must(t, err)
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	must(t, err)
	a := answer{status: reply.StatusCode, header: reply.Header}
	_ = json.Unmarshal(text, &a.body) // some answers have no body
	return a
}

const john = `{"firstName":"John","lastName":"Doe","email":"johndoe@contoso.com","companyName":"Contoso"}`

// create creates a contact and returns its id and ETag.
func (w *world) create(t *testing.T) (id, etag string) {
	t.Helper()
	a := w.call(t, http.MethodPost, "/api/contacts", john)
	if a.status != http.StatusCreated {
		t.Fatalf("created: %d, %v", a.status, a.body)
	}
	location := a.header.Get("Location")
	return location[strings.LastIndex(location, "/")+1:], a.header.Get("ETag")
}

// walk makes the requests of the README's walk, with preconditions and repeats. It returns the
// key of the contact, which has four events.
func (w *world) walk(t *testing.T) (key string) {
	t.Helper()
	const jane, joan = `{"firstName":"Jane","lastName":"Doe"}`, `{"firstName":"Joan","lastName":"Doe"}`
	var first, last string // ETags: of the creation, of the last change
	step := func(want int, method, path, body string, headers ...string) answer {
		t.Helper()
		a := w.call(t, method, path, body, headers...)
		if a.status != want {
			t.Fatalf("%s %s %v: %d, want %d: %v", method, path, headers, a.status, want, a.body)
		}
		if method == http.MethodPost && want < 300 && a.header.Get("Idempotency-Replayed") == "" {
			if last = a.header.Get("ETag"); last == "" {
				t.Errorf("%s %s: no ETag", method, path)
			}
		}
		return a
	}
	const all = "/api/contacts"
	made := step(http.StatusCreated, http.MethodPost, all, john, "Idempotency-Key", "k1")
	_, key, _ = strings.Cut(made.header.Get("Location"), all+"/")
	path := all + "/" + key
	first = last
	if again := step(http.StatusOK, http.MethodPost, all, john, "Idempotency-Key", "k1"); again.header.Get("Idempotency-Replayed") != "true" || !strings.HasSuffix(again.header.Get("Location"), path) {
		t.Errorf("the same creation again: %v", again.header)
	}
	step(http.StatusUnprocessableEntity, http.MethodPost, all, strings.Replace(john, "John", "Jack", 1), "Idempotency-Key", "k1")
	step(http.StatusUnprocessableEntity, http.MethodPost, all, `{"firstName":""}`)
	step(http.StatusUnprocessableEntity, http.MethodPost, path+"/update-name", jane, "Idempotency-Key", "k1")
	if read := step(http.StatusOK, http.MethodGet, path, ""); read.header.Get("ETag") != first || read.body["email"] != "johndoe@contoso.com" {
		t.Errorf("read: %v %v", read.header, read.body)
	}
	step(http.StatusNotModified, http.MethodGet, path, "", "If-None-Match", first)
	step(http.StatusNoContent, http.MethodPost, path+"/update-name", jane, "If-Match", first, "Idempotency-Key", "k2")
	if again := step(http.StatusNoContent, http.MethodPost, path+"/update-name", jane, "If-Match", first, "Idempotency-Key", "k2"); again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the same change again: %v", again.header)
	}
	step(http.StatusUnprocessableEntity, http.MethodPost, path+"/update-email", `{"email":null}`, "Idempotency-Key", "k2")
	step(http.StatusUnprocessableEntity, http.MethodDelete, path, "", "Idempotency-Key", "k2")
	step(http.StatusPreconditionFailed, http.MethodPost, path+"/update-name", joan, "If-Match", first)
	step(http.StatusNoContent, http.MethodPost, path+"/update-email", `{"email":"jane@contoso.com"}`)
	if read := step(http.StatusOK, http.MethodGet, path, ""); read.header.Get("ETag") != last || read.body["email"] != "jane@contoso.com" || fmt.Sprint(read.body["name"]) != "map[firstName:Jane lastName:Doe]" {
		t.Errorf("read after two changes: %v %v", read.header, read.body)
	}
	if trail, _ := step(http.StatusOK, http.MethodGet, path+"/audit", "").body["items"].([]any); len(trail) != 3 {
		t.Errorf("the audit trail: %v", trail)
	}
	step(http.StatusNoContent, http.MethodDelete, path, "", "If-Match", last, "Idempotency-Key", "k3")
	step(http.StatusUnprocessableEntity, http.MethodPost, path+"/update-name", joan, "Idempotency-Key", "k3")
	step(http.StatusNoContent, http.MethodDelete, path, "")
	step(http.StatusNotFound, http.MethodGet, path, "")
	step(http.StatusNotFound, http.MethodPost, path+"/update-name", joan)

	w.arrived(t, key, "ContactCreatedEvent", "ContactNameUpdatedEvent", "ContactEmailUpdatedEvent", "ContactDeletedEvent")
	return key
}

// arrived waits until the consumer has received exactly these events of a key.
func (w *world) arrived(t *testing.T, key string, actions ...string) {
	t.Helper()
	var got []string
	testkit.Eventually(t, time.Minute, fmt.Sprint("of ", key, " ", actions), func() bool {
		got = nil
		messages, _ := w.ledger.Messages()
		for _, m := range messages {
			if m.Session == key {
				got = append(got, m.Subject)
			}
		}
		return len(got) >= len(actions)
	})
	if !slices.Equal(got, actions) {
		t.Errorf("of %s arrived %v, want %v", key, got, actions)
	}
}

// concurrent makes clients change the same state at the same time; one of them succeeds.
func (w *world) concurrent(t *testing.T) {
	t.Helper()
	id, etag := w.create(t)
	var done, refused atomic.Int64
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			switch a := w.call(t, http.MethodPost, "/api/contacts/"+id+"/update-email", fmt.Sprintf(`{"email":"c%d@contoso.com"}`, n), "If-Match", etag); a.status {
			case http.StatusNoContent:
				done.Add(1)
			case http.StatusPreconditionFailed:
				refused.Add(1)
			default:
				t.Errorf("a change: %d, %v", a.status, a.body)
			}
		})
	}
	clients.Wait()
	if done.Load() != 1 || refused.Load() != 7 {
		t.Errorf("of eight changes of one state %d were made, %d refused", done.Load(), refused.Load())
	}
	w.arrived(t, id, "ContactCreatedEvent", "ContactEmailUpdatedEvent")
}

// pages reads all contacts page by page.
func (w *world) pages(t *testing.T) {
	t.Helper()
	want := map[string]bool{}
	for range 5 {
		id, _ := w.create(t)
		want[id] = true
	}
	next := "/api/contacts?pageSize=2"
	for pages := 0; next != ""; pages++ {
		a := w.call(t, http.MethodGet, next, "")
		items, _ := a.body["items"].([]any)
		if a.status != http.StatusOK || len(items) > 2 || pages > 10 {
			t.Fatalf("page %d: %d, %v", pages, a.status, a.body)
		}
		for _, item := range items {
			id, _ := item.(map[string]any)["id"].(string)
			delete(want, id)
		}
		next, _ = a.body["nextLink"].(string)
		if at := strings.Index(next, "/api/"); at > 0 {
			next = next[at:]
		}
	}
	if len(want) > 0 {
		t.Errorf("no page has %v", want)
	}
}
