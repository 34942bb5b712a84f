package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"feedbox/tests/testenv"
)

// generatedRequests is the number of requests of TestGeneratedRequests.
const generatedRequests = 5000

// TestGeneratedRequests generates valid and invalid requests from the OpenAPI document, and
// checks the answers against it: no 5xx, no undocumented status or header, no body that
// violates its schema, no valid request refused. FEEDBOX_TEST_SEED repeats a run.
func TestGeneratedRequests(t *testing.T) {
	a, _ := startEmulated(t, nil)
	g := &generator{api: a, random: testenv.Random(t), document: document(t, a), tokens: map[string]string{}}
	g.schemas = compileSchemas(t, g.document)
	// Write to both partitions, because a generated session token may require the first write
	// of either.
	for n := 0; n < 3 || strings.Count(a.session.get(), ":") < 2; n++ {
		path, etag := a.create()
		g.remember(path[len("/api/contacts/"):], etag)
	}
	statuses := map[int]int{}
	for n := range generatedRequests {
		r := g.request()
		if len(g.keyed) > 0 && g.chance(10) {
			r = pick(g, g.keyed...) // a repeat
			r.good = false
		}
		got := a.do(r.method, r.target, r.body, r.headers...)
		statuses[got.status]++
		if problem := g.judge(r, got); problem != "" {
			t.Errorf("request %d: %s\n%s %s\n%q\n%s\n-> %d %v\n%s", n, problem, r.method, r.target, r.headers, r.body, got.status, got.header, got.body)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		t.Logf("%d: %d", status, statuses[status])
	}
	for _, status := range []int{200, 201, 204, 400, 404, 406, 412, 415, 422} {
		if statuses[status] == 0 {
			t.Errorf("no request was answered with %d: the generator is too narrow", status)
		}
	}
}

// generator generates requests with the expected outcome.
type generator struct {
	api      *api
	random   *rand.Rand
	document map[string]any
	schemas  map[string]*jsonschema.Schema
	ids      []string
	etags    map[string]string
	keyed    []generated       // requests that succeeded under a key
	tokens   map[string]string // continuation tokens and the paths they lead on in
}

// generated is one request. A good one must succeed unless the contact is deleted or in
// another state.
type generated struct {
	method, template, target, body string
	headers                        []string
	operation                      map[string]any
	good                           bool
}

func (g *generator) remember(id, etag string) {
	if g.etags == nil {
		g.etags = map[string]string{}
	}
	if len(g.ids) < 20 {
		g.ids = append(g.ids, id)
	} else {
		g.ids[g.random.IntN(len(g.ids))] = id
	}
	g.etags[id] = etag
}

// chance returns true in n of 100 cases.
func (g *generator) chance(n int) bool { return g.random.IntN(100) < n }

func pick[T any](g *generator, from ...T) T { return from[g.random.IntN(len(from))] }

func (g *generator) request() generated {
	paths := g.document["paths"].(map[string]any)
	template := pick(g, slices.Sorted(maps.Keys(paths))...)
	item := paths[template].(map[string]any)
	method := pick(g, slices.Sorted(maps.Keys(item))...)
	r := generated{method: strings.ToUpper(method), template: template, target: template, operation: item[method].(map[string]any), good: true}
	if r.method == "DELETE" && g.chance(60) {
		return g.request() // or few contacts would live long
	}
	g.path(&r)
	g.parameters(&r)
	g.content(&r)
	return r
}

func (g *generator) path(r *generated) {
	if !strings.Contains(r.template, "{id}") {
		return
	}
	id := pick(g, g.ids...)
	if g.chance(8) {
		r.good = false
		id = pick(g, uuid.NewString(), "x", "%2F", "..%2f..", strings.Repeat("a", 300), uuid.Nil.String(), strings.ToUpper(id)+"0", "{"+id+"}", "%00", "%ff")
	}
	r.target = strings.Replace(r.template, "{id}", id, 1)
}

// parameters sets some documented parameters, sometimes to invalid values.
func (g *generator) parameters(r *generated) {
	query := url.Values{}
	for _, reference := range r.operation["parameters"].([]any) {
		name := strings.ToLower(g.resolve(reference.(map[string]any))["name"].(string))
		if name == "id" || !g.chance(12) {
			continue
		}
		value, good := g.parameter(name, r)
		r.good = r.good && good
		switch name {
		case "pagesize":
			query.Set("pageSize", value)
		case "continuationtoken":
			query.Set("continuationToken", value)
		default:
			r.headers = append(r.headers, name, value)
		}
	}
	if g.chance(2) && r.template == "/api/contacts" && r.method == "GET" {
		query.Set("unknown", "1")
		r.good = false
	}
	if token := slices.Index(r.headers, headerContinuationToken); token >= 0 && query.Has("continuationToken") {
		r.good = r.good && r.headers[token+1] == query.Get("continuationToken")
	}
	if len(query) > 0 {
		r.target += "?" + query.Encode()
	}
	if g.chance(5) {
		accept := pick(g, "application/json", "*/*", "text/html", "application/*;q=0")
		r.headers = append(r.headers, "Accept", accept)
		r.good = r.good && (accept == "application/json" || accept == "*/*")
	}
}

func (g *generator) parameter(name string, r *generated) (value string, good bool) {
	etag := `"unknown"`
	for _, id := range g.ids {
		if strings.Contains(r.target, id) {
			etag = g.etags[id]
		}
	}
	switch name {
	case "if-match", "if-none-match", "etag":
		value = pick(g, etag, "W/"+etag, `"a", `+etag, "*", `"other"`, "nonsense", `"`, "", strings.Repeat(`"a",`, 40), `"`+strings.Repeat("x", 60)+`"`)
		return value, false // may rightly fail
	case "pagesize":
		value = pick(g, "1", "10", "100", "0", "101", "-1", "ten", "1e1", "99999999999999999999")
		return value, value == "1" || value == "10" || value == "100"
	case "continuationtoken", "x-continuation-token":
		if len(g.tokens) > 0 && g.chance(70) {
			token := pick(g, slices.Sorted(maps.Keys(g.tokens))...)
			return token, g.tokens[token] == r.target
		}
		return pick(g, "x", "eyJ9", strings.Repeat("A", 200), "{}"), false
	case "idempotency-key":
		key := uuid.NewString()
		value = pick(g, key, `"`+key+`"`, "k1", `"k1"`, `"k`, "", "a\"b", strings.Repeat("k", 256), "ключ")
		return value, strings.Contains(value, key)
	case "x-ms-session-token":
		return pick(g, "nonsense", "0:-1#1", "0:1#1#2=3", strings.Repeat("0:-1#1,", 50), ";"), false
	case "traceparent":
		return pick(g, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "garbage"), true
	default:
		return pick(g, "abc", "two words", strings.Repeat("x", 200)), true
	}
}

// content generates a body from the schema, sometimes with a mistake.
func (g *generator) content(r *generated) {
	body, ok := r.operation["requestBody"].(map[string]any)
	if !ok {
		return
	}
	contents := body["content"].(map[string]any)
	mediaType := slices.Sorted(maps.Keys(contents))[0]
	reference := contents[mediaType].(map[string]any)["schema"].(map[string]any)["$ref"].(string)
	name := reference[strings.LastIndexByte(reference, '/')+1:]
	schema := g.document["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	value := g.value(schema)
	if g.chance(40) {
		g.spoil(value.(map[string]any))
		r.good = false // the document cannot say all that an address must be
	}
	text, err := json.Marshal(value)
	if err != nil {
		g.api.t.Fatal(err)
	}
	r.body = string(text)
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
	if err != nil || g.schemas[name].Validate(decoded) != nil {
		r.good = false
	}
	if g.chance(5) {
		r.good = false
		cut := g.random.IntN(len(r.body))
		r.body = pick(g, r.body[:cut], r.body+"}", "", "null", "[]", `"text"`, "\xff"+r.body, strings.Replace(r.body, "{", `{"firstName":"a","firstName":"b",`, 1),
			strings.Repeat("[", 100), r.body[:cut]+"\x00"+r.body[cut:], `{"firstName":"`+strings.Repeat("a", 70000)+`"}`)
	}
	if g.chance(4) {
		r.good = false
		mediaType = pick(g, "text/plain", "application/json; charset=utf-16", "", "application/xml", "multipart/form-data")
	}
	r.headers = append(r.headers, "Content-Type", mediaType)
}

// value generates a value that the schema allows.
func (g *generator) value(schema map[string]any) any {
	kinds, ok := schema["type"].([]any)
	if !ok {
		kinds = []any{schema["type"]}
	}
	switch pick(g, kinds...) {
	case "null":
		return nil
	case "object":
		out := map[string]any{}
		required, _ := schema["required"].([]any)
		properties := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if slices.Contains(required, any(name)) || g.chance(60) {
				out[name] = g.value(properties[name].(map[string]any))
			}
		}
		return out
	default:
		if schema["format"] == "email" {
			return pick(g, "a@b.example", "jane.doe+tag@contoso.example", strings.Repeat("l", 64)+"@contoso.example", "x_y@sub.domain.example")
		}
		limit := int(schema["maxLength"].(float64))
		return pick(g, "Jane", "O'Brien-Söderström", "<b>&\"\\", "李 雷", "👩👧", " leading", strings.Repeat("x", limit), strings.Repeat("é", limit))
	}
}

// spoil makes one mistake, or a change that only looks like one.
func (g *generator) spoil(object map[string]any) {
	names := slices.Sorted(maps.Keys(object))
	if len(names) == 0 || g.chance(15) {
		object[pick(g, "id", "unknown", "", "ttl", "FIRSTNAME", "a/b~c")] = "x"
		return
	}
	name := pick(g, names...)
	switch g.random.IntN(4) {
	case 0:
		delete(object, name)
	case 1:
		object[name] = pick[any](g, nil, 1, true, []any{}, map[string]any{}, 1e300)
	case 2:
		object[name] = pick(g, "", " ", "\u00a0\u2003", "a\x00b", "a\u0085b", "a\nb", "a\u200bb", "\u202ea", "👩\u200d👧", "@", "a@", "@b", "a@@b", "a b@c", strings.Repeat("y", 501), strings.Repeat("😀", 251))
	default:
		if inner, ok := object[name].(map[string]any); ok {
			g.spoil(inner)
		}
	}
}

// judge returns the fault of an answer, or "".
func (g *generator) judge(r generated, got answer) string {
	if got.status >= 500 {
		return "a 5xx"
	}
	responses := r.operation["responses"].(map[string]any)
	response, ok := responses[strconv.Itoa(got.status)].(map[string]any)
	if !ok {
		return "the status is not documented"
	}
	response = g.resolve(response)
	for name := range got.header {
		if name == "Etag" {
			name = "ETag"
		}
		headers, _ := response["headers"].(map[string]any)
		documented := slices.ContainsFunc(slices.Collect(maps.Keys(headers)), func(known string) bool { return strings.EqualFold(known, name) })
		if !documented && !slices.Contains(everywhere, name) {
			return "the header " + name + " is not documented"
		}
	}
	if problem := g.judgeBody(response, got); problem != "" {
		return problem
	}
	if r.good && got.status >= 400 && got.status != 404 {
		return "a good request is refused"
	}
	if !r.good && r.body != "" && got.status < 300 {
		if problem := g.acceptedByMistake(r); problem != "" {
			return problem
		}
	}
	g.learn(r, got)
	return ""
}

const headerContinuationToken = "x-continuation-token"

// everywhere lists the headers of every answer, which the document omits.
var everywhere = []string{
	"Content-Type", "Content-Length", "Date", "Cache-Control", "Connection", "X-Content-Type-Options", "Referrer-Policy",
	"Content-Security-Policy", "Cross-Origin-Resource-Policy", "X-Ms-Client-Request-Id",
}

func (g *generator) resolve(node map[string]any) map[string]any {
	reference, ok := node["$ref"].(string)
	if !ok {
		return node
	}
	var at any = g.document
	for part := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at.(map[string]any)
}

func (g *generator) judgeBody(response map[string]any, got answer) string {
	contents, ok := response["content"].(map[string]any)
	if !ok {
		if got.body != "" {
			return "a body where none is documented"
		}
		return ""
	}
	content, ok := contents[got.header.Get("Content-Type")].(map[string]any)
	if !ok {
		return "the content type is not documented"
	}
	reference := content["schema"].(map[string]any)["$ref"].(string)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(got.body))
	if err != nil {
		return "the body is not JSON: " + err.Error()
	}
	if err := g.schemas[reference[strings.LastIndexByte(reference, '/')+1:]].Validate(value); err != nil {
		return "the body breaks its schema: " + err.Error()
	}
	return ""
}

// acceptedByMistake reports a request that succeeded although its body violates the
// documented schema.
func (g *generator) acceptedByMistake(r generated) string {
	contents := r.operation["requestBody"].(map[string]any)["content"].(map[string]any)
	for _, content := range contents {
		reference := content.(map[string]any)["schema"].(map[string]any)["$ref"].(string)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(r.body))
		if err != nil {
			return "a body that is not JSON is accepted"
		}
		if err := g.schemas[reference[strings.LastIndexByte(reference, '/')+1:]].Validate(value); err != nil {
			return fmt.Sprintf("a body is accepted that breaks its schema: %v", err)
		}
	}
	return ""
}

// learn stores ids, tags and tokens for later requests.
func (g *generator) learn(r generated, got answer) {
	if token := got.header.Get("X-Continuation-Token"); token != "" && len(g.tokens) < 50 {
		g.tokens[token], _, _ = strings.Cut(r.target, "?")
	}
	if slices.Contains(r.headers, "idempotency-key") && got.status < 300 && len(g.keyed) < 100 {
		g.keyed = append(g.keyed, r)
	}
	if got.status == http.StatusCreated {
		g.remember(got.header.Get("Location")[len("/api/contacts/"):], got.header.Get("ETag"))
	}
	if etag := got.header.Get("ETag"); etag != "" {
		for _, id := range g.ids {
			if strings.Contains(r.target, id) {
				g.etags[id] = etag
			}
		}
	}
	if r.method == "DELETE" && got.status == http.StatusNoContent && len(g.ids) > 3 {
		g.ids = slices.DeleteFunc(g.ids, func(id string) bool { return strings.Contains(r.target, id) && g.chance(50) })
	}
}
