package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/httpapi"
)

// statusTable makes every route answer with every status that the OpenAPI document lists for
// it, with the emulator as store.
type statusTable struct {
	t        *testing.T
	emulator *cosmosemu.Server
	open     *api // everybody may call
	keyed    *api
	limited  *api // callers need an API key; "reader" has used up its rate
	strict   *api // changes need If-Match
	// colliding generates the same id for each contact, the only way to cause a conflict.
	colliding *api
	seen      map[string]map[int]bool
}

// call is a valid request to one route.
type call struct {
	method, template, verb, body, mediaType string
}

func (c call) name() string { return c.method + " " + c.template }

// good lists the routes with a request that succeeds.
var good = []call{
	{"POST", "/api/contacts", "", jane, "application/json"},
	{"GET", "/api/contacts", "", "", ""},
	{"GET", "/api/contacts/{id}", "", "", ""},
	{"PATCH", "/api/contacts/{id}", "", `{"name":{"firstName":"Janet"}}`, "application/merge-patch+json"},
	{"DELETE", "/api/contacts/{id}", "", "", ""},
	{"GET", "/api/contacts/{id}/audit", "/audit", "", ""},
	{"POST", "/api/contacts/{id}/update-name", "/update-name", `{"firstName":"X","lastName":"Y"}`, "application/json"},
	{"POST", "/api/contacts/{id}/update-description", "/update-description", `{"description":"new"}`, "application/json"},
	{"POST", "/api/contacts/{id}/update-email", "/update-email", `{"email":null}`, "application/json"},
	{"POST", "/api/contacts/{id}/update-company", "/update-company", `{"companyName":"X"}`, "application/json"},
}

// cause makes a valid request fail with the status.
type cause struct {
	name    string
	status  int
	applies func(c call) bool
	send    func(s *statusTable, c call) answer
}

func (c call) changes() bool    { return c.method != "GET" }
func (c call) ofContact() bool  { return strings.Contains(c.template, "{id}") }
func (c call) creates() bool    { return c.method == "POST" && !c.ofContact() }
func (c call) hasBody() bool    { return c.body != "" }
func (c call) hasAnswer() bool  { return c.method == "GET" || c.method == "PATCH" || c.creates() }
func (c call) readsState() bool { return c.method == "GET" && c.verb == "" && c.ofContact() }

func always(call) bool { return true }

// to sends the call to a, on a new contact.
func (s *statusTable) to(a *api, c call, headers ...string) answer {
	path := "/api/contacts"
	if c.ofContact() {
		path, _ = s.open.create()
		path += c.verb
	}
	return s.at(a, path, c, headers...)
}

func (s *statusTable) at(a *api, path string, c call, headers ...string) answer {
	if !slices.Contains(headers, "Content-Type") {
		headers = append(headers, "Content-Type", c.mediaType)
	}
	return a.do(c.method, path, c.body, headers...)
}

// under sends the call while the emulator injects a fault into every operation on items.
func (s *statusTable) under(f cosmosemu.Fault, c call, headers ...string) answer {
	path := "/api/contacts"
	if c.ofContact() {
		path, _ = s.open.create()
		path += c.verb
	}
	for _, op := range []cosmosemu.Operation{
		cosmosemu.OpReadItem, cosmosemu.OpBatch, cosmosemu.OpCreateItem, cosmosemu.OpReplaceItem, cosmosemu.OpQueryItems,
	} {
		defer s.emulator.Control(op, cosmosemu.Always(f))()
	}
	return s.at(s.open, path, c, headers...)
}

func (c call) withBody(body string) call {
	c.body = body
	return c
}

var causes = []cause{
	{"success", 0, always, func(s *statusTable, c call) answer { return s.to(s.open, c) }},
	{"repeat", 200, call.creates, func(s *statusTable, c call) answer {
		s.to(s.open, c, "Idempotency-Key", "repeat")
		return s.to(s.open, c, "Idempotency-Key", "repeat")
	}},
	{"not modified", 304, call.readsState, func(s *statusTable, c call) answer {
		path, etag := s.open.create()
		return s.at(s.open, path, c, "If-None-Match", etag)
	}},
	{"malformed body", 400, call.hasBody, func(s *statusTable, c call) answer { return s.to(s.open, c.withBody("{")) }},
	{"malformed session token", 400, always, func(s *statusTable, c call) answer {
		return s.to(s.open, c, "x-ms-session-token", "nonsense")
	}},
	{"malformed precondition", 400, func(c call) bool { return c.changes() || c.readsState() }, func(s *statusTable, c call) answer {
		return s.to(s.open, c, "If-Match", "nonsense")
	}},
	{"malformed key", 400, call.changes, func(s *statusTable, c call) answer { return s.to(s.open, c, "Idempotency-Key", `"`) }},
	{"foreign token", 400, func(c call) bool { return !c.changes() && !c.readsState() }, func(s *statusTable, c call) answer {
		return s.to(s.open, c, "x-continuation-token", "AQIDBA")
	}},
	{"no credential", 401, always, func(s *statusTable, c call) answer { return s.to(s.keyed, c) }},
	{"wrong credential", 401, always, func(s *statusTable, c call) answer { return s.to(s.keyed, c, "x-api-key", "nokey") }},
	{"scope", 403, call.changes, func(s *statusTable, c call) answer { return s.to(s.keyed, c, "x-api-key", "rkey") }},
	{"unknown contact", 404, call.ofContact, func(s *statusTable, c call) answer {
		return s.at(s.open, "/api/contacts/b5e2e7aa-4982-4735-9422-c39a7c4af5c2"+c.verb, c)
	}},
	{"no id", 404, call.ofContact, func(s *statusTable, c call) answer { return s.at(s.open, "/api/contacts/7"+c.verb, c) }},
	{"deleted contact", 404, func(c call) bool { return c.ofContact() && c.method != "DELETE" && c.verb != "/audit" }, func(s *statusTable, c call) answer {
		path, _ := s.open.create()
		s.open.do(http.MethodDelete, path, "")
		return s.at(s.open, path+c.verb, c)
	}},
	{"method", 405, always, func(s *statusTable, c call) answer {
		c.method = http.MethodPut
		return s.to(s.open, c)
	}},
	{"accept", 406, call.hasAnswer, func(s *statusTable, c call) answer { return s.to(s.open, c, "Accept", "text/html") }},
	{"taken id", 409, call.creates, func(s *statusTable, c call) answer {
		s.to(s.colliding, c)
		return s.to(s.colliding, c)
	}},
	{"gone", 410, call.creates, func(s *statusTable, c call) answer {
		s.open.do(http.MethodDelete, s.to(s.open, c, "Idempotency-Key", "gone").header.Get("Location"), "")
		return s.to(s.open, c, "Idempotency-Key", "gone")
	}},
	{"stale precondition", 412, func(c call) bool { return c.changes() || c.readsState() }, func(s *statusTable, c call) answer {
		return s.to(s.open, c, "If-Match", `"stale"`)
	}},
	{"must be new", 412, func(c call) bool { return c.changes() && c.ofContact() }, func(s *statusTable, c call) answer {
		return s.to(s.open, c, "If-None-Match", "*")
	}},
	{"large body", 413, call.hasBody, func(s *statusTable, c call) answer {
		return s.to(s.open, c.withBody(`{"x":"`+strings.Repeat("x", 70_000)+`"}`))
	}},
	{"media type", 415, call.hasBody, func(s *statusTable, c call) answer { return s.to(s.open, c, "Content-Type", "text/plain") }},
	{"content", 422, call.hasBody, func(s *statusTable, c call) answer { return s.to(s.open, c.withBody(`{"unknown":1}`)) }},
	{"reused key", 422, func(c call) bool { return c.changes() && c.method != "DELETE" }, func(s *statusTable, c call) answer {
		path, _ := s.open.create()
		if c.creates() {
			path = "/api/contacts"
		}
		s.at(s.open, path+c.verb, c, "Idempotency-Key", "reused")
		other := strings.NewReplacer("Jane", "June", "X", "Z", "new", "newer", "null", `"a@b.example"`).Replace(c.body)
		return s.at(s.open, path+c.verb, c.withBody(other), "Idempotency-Key", "reused")
	}},
	{"key of another change", 422, func(c call) bool { return c.method == "DELETE" }, func(s *statusTable, c call) answer {
		path, _ := s.open.create()
		s.open.do(http.MethodPost, path+"/update-email", `{"email":null}`, "Idempotency-Key", "reused")
		return s.at(s.open, path, c, "Idempotency-Key", "reused")
	}},
	{"strict mode", 428, func(c call) bool { return c.changes() && c.ofContact() }, func(s *statusTable, c call) answer { return s.to(s.strict, c) }},
	{"rate of the caller", 429, always, func(s *statusTable, c call) answer {
		s.to(s.limited, c, "x-api-key", "wkey") // spends the burst
		return s.to(s.limited, c, "x-api-key", "wkey")
	}},
	{"throttled store", 429, always, func(s *statusTable, c call) answer { return s.under(cosmosemu.Throttled(30*time.Second), c) }},
	{"unforeseen answer of the store", 500, always, func(s *statusTable, c call) answer {
		return s.under(cosmosemu.Fault{Status: http.StatusTeapot}, c)
	}},
	{"store away", 503, always, func(s *statusTable, c call) answer { return s.under(cosmosemu.Unavailable(), c) }},
}

func TestEveryRouteInEveryStatus(t *testing.T) {
	m, emulator := emulated(t, uuid.New)
	s := &statusTable{t: t, emulator: emulator, seen: map[string]map[int]bool{}}
	s.open = startOver(t, m, &httpapi.Options{Audit: true})
	s.keyed = startOver(t, m, &httpapi.Options{Audit: true, Auth: apiKeys(t)})
	s.limited = startOver(t, m, &httpapi.Options{Audit: true, Auth: apiKeys(t), RateLimit: 1e-6, RateBurst: 1})
	s.strict = startOver(t, m, &httpapi.Options{Audit: true, RequirePrecondition: true})
	s.open.session = &session{}
	s.keyed.session, s.limited.session, s.strict.session = s.open.session, s.open.session, s.open.session
	same, calls := uuid.New(), 0
	collisions, _ := emulated(t, func() uuid.UUID {
		if calls++; calls%2 == 1 {
			return same // of the contact; the next one is the event's
		}
		return uuid.New()
	})
	s.colliding = startOver(t, collisions, nil)
	for _, c := range good {
		for _, why := range causes {
			if !why.applies(c) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", c.name(), why.name), func(t *testing.T) {
				got := why.send(s, c)
				want := why.status
				if want == 0 {
					want = map[bool]int{true: 200, false: 204}[c.hasAnswer()]
					if c.creates() {
						want = 201
					}
				}
				if got.status != want {
					t.Fatalf("%d %s, want %d", got.status, got.body, want)
				}
				if want >= 400 {
					problemOf(t, got)
				}
				if (want == 429 || want == 503) != (got.header.Get("Retry-After") != "") {
					t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
				}
				s.note(c, want)
			})
		}
	}
	s.compareWithDocument()
}

func (s *statusTable) note(c call, status int) {
	if s.seen[c.name()] == nil {
		s.seen[c.name()] = map[int]bool{}
	}
	s.seen[c.name()][status] = true
}

// compareWithDocument checks that every documented status of every route was seen.
func (s *statusTable) compareWithDocument() {
	for path, item := range document(s.t, s.open)["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			name := strings.ToUpper(method) + " " + path
			for _, status := range slices.Sorted(maps.Keys(operation.(map[string]any)["responses"].(map[string]any))) {
				code, _ := strconv.Atoi(status)
				// Every principal may read, so reading never answers 403.
				if code == http.StatusForbidden && method == "get" {
					continue
				}
				if !s.seen[name][code] {
					s.t.Errorf("%s documents %d, which the table does not cause", name, code)
				}
			}
		}
	}
}
