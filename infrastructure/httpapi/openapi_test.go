package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"feedbox/infrastructure/httpapi"
	"feedbox/infrastructure/httpapi/auth"
)

// document fetches and decodes the OpenAPI document.
func document(t *testing.T, a *api) map[string]any {
	t.Helper()
	got := a.do(http.MethodGet, "/openapi.json", "")
	if got.status != 200 || got.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %v", got.status, got.header)
	}
	if file := os.Getenv("FEEDBOX_TEST_OPENAPI_OUT"); file != "" { // for validators outside this repository
		if err := os.WriteFile(file, []byte(got.body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(got.body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOpenAPIDocument checks the rules of OpenAPI 3.1: references resolve, schemas are valid
// JSON Schema 2020-12, path parameters are declared, ids are unique, answers are described.
func TestOpenAPIDocument(t *testing.T) {
	for name, authenticator := range map[string]auth.Authenticator{"open": nil, "apikey": apiKeys(t)} {
		t.Run(name, func(t *testing.T) {
			a := start(t, &httpapi.Options{Auth: authenticator})
			doc := document(t, a)
			if doc["openapi"] != "3.1.0" {
				t.Errorf("version %v", doc["openapi"])
			}
			resolveReferences(t, doc, doc, "#")
			compileSchemas(t, doc)
			ids := map[string]bool{}
			operations := 0
			for path, item := range doc["paths"].(map[string]any) {
				for method, value := range item.(map[string]any) {
					operations++
					operation := value.(map[string]any)
					where := method + " " + path
					id, _ := operation["operationId"].(string)
					if id == "" || ids[id] {
						t.Errorf("%s: operationId %q is missing or repeats", where, id)
					}
					ids[id] = true
					checkParameters(t, where, path, operation)
					checkResponses(t, where, operation)
					if _, secured := operation["security"]; secured != (name != "open") {
						t.Errorf("%s: security is declared: %v", where, secured)
					}
				}
			}
			if operations < 8 {
				t.Errorf("only %d operations", operations)
			}
		})
	}
}

func resolveReferences(t *testing.T, doc map[string]any, node any, where string) {
	t.Helper()
	switch n := node.(type) {
	case map[string]any:
		if reference, ok := n["$ref"].(string); ok {
			var at any = doc
			for part := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
				members, _ := at.(map[string]any)
				at = members[part]
			}
			if at == nil {
				t.Errorf("%s: the reference %s does not resolve", where, reference)
			}
		}
		for name, child := range n {
			resolveReferences(t, doc, child, where+"/"+name)
		}
	case []any:
		for i, child := range n {
			resolveReferences(t, doc, child, fmt.Sprint(where, "/", i))
		}
	}
}

// compileSchemas compiles every component schema, which also validates it against the
// meta-schema.
func compileSchemas(t *testing.T, doc map[string]any) map[string]*jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*jsonschema.Schema{}
	for name := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		schema, err := compiler.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatalf("schema %s: %v", name, err)
		}
		compiled[name] = schema
	}
	return compiled
}

var inBraces = regexp.MustCompile(`\{(\w+)\}`)

func checkParameters(t *testing.T, where, path string, operation map[string]any) {
	t.Helper()
	var names []string
	for _, parameter := range operation["parameters"].([]any) {
		reference := parameter.(map[string]any)["$ref"].(string)
		names = append(names, reference[strings.LastIndexByte(reference, '/')+1:])
	}
	for _, match := range inBraces.FindAllStringSubmatch(path, -1) {
		if !slices.Contains(names, match[1]) {
			t.Errorf("%s: the path parameter %s is not declared", where, match[1])
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%s: a parameter is declared twice: %v", where, names)
	}
}

func checkResponses(t *testing.T, where string, operation map[string]any) {
	t.Helper()
	responses := operation["responses"].(map[string]any)
	success := 0
	for status := range responses {
		if status[0] == '2' {
			success++
		}
	}
	for _, status := range []string{"401", "403", "429", "500", "503"} {
		if responses[status] == nil {
			t.Errorf("%s: %s is not documented", where, status)
		}
	}
	if success == 0 {
		t.Errorf("%s: no success is documented", where)
	}
}

// parametersOf returns the parameters of an operation by name.
func parametersOf(doc map[string]any, operation any) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, reference := range operation.(map[string]any)["parameters"].([]any) {
		key := reference.(map[string]any)["$ref"].(string)
		parameter := doc["components"].(map[string]any)["parameters"].(map[string]any)[key[strings.LastIndexByte(key, '/')+1:]].(map[string]any)
		out[parameter["name"].(string)] = parameter
	}
	return out
}

// The document describes the server with its options.
func TestOpenAPIFollowsTheOptions(t *testing.T) {
	for name, options := range map[string]*httpapi.Options{
		"default": {}, "strict": {RequirePrecondition: true, PublicURL: "https://api.contoso.example/", Auth: apiKeys(t)},
	} {
		t.Run(name, func(t *testing.T) {
			strict := options.RequirePrecondition
			a := start(t, options)
			doc := document(t, a)
			server := doc["servers"].([]any)[0].(map[string]any)["url"]
			if want := map[bool]string{false: "/", true: "https://api.contoso.example"}[strict]; server != want {
				t.Errorf("the server is %v, want %s", server, want)
			}
			var tags []string
			for _, tag := range doc["tags"].([]any) {
				tags = append(tags, tag.(map[string]any)["name"].(string))
			}
			for path, item := range doc["paths"].(map[string]any) {
				for method, operation := range item.(map[string]any) {
					for _, tag := range operation.(map[string]any)["tags"].([]any) {
						if !slices.Contains(tags, tag.(string)) {
							t.Errorf("%s %s has the tag %v, which is not declared", method, path, tag)
						}
					}
					change := method != "get" && strings.Contains(path, "{id}")
					ifMatch, declared := parametersOf(doc, operation)["If-Match"]
					if required, _ := ifMatch["required"].(bool); declared && required != (strict && change) {
						t.Errorf("%s %s: If-Match is required: %t", method, path, required)
					}
					if _, listed := operation.(map[string]any)["responses"].(map[string]any)["428"]; listed != (strict && change) {
						t.Errorf("%s %s: 428 is listed: %t", method, path, listed)
					}
				}
			}
		})
	}
}

// TestDocumentedLimitsAreEnforced sends, for each limit of a parameter, a value at the limit
// and one beyond it. The server must agree with the document on both.
func TestDocumentedLimitsAreEnforced(t *testing.T) {
	a, _ := startEmulated(t, nil)
	path, _ := a.create()
	doc := document(t, a)
	operation := doc["paths"].(map[string]any)["/api/contacts/{id}/update-email"].(map[string]any)["post"]
	for name, values := range map[string]map[string]bool{ // value: whether it is well formed
		"If-Match": {
			`"` + strings.Repeat("x", 48) + `"`: true, `"` + strings.Repeat("x", 49) + `"`: false, strings.Repeat(`"a",`, 31) + `"a"`: true,
			"*": true, "a": false, "": false, `"a" "b"`: false, `W/"a", "b"`: true,
		},
		"If-None-Match":          {`"` + strings.Repeat("x", 48) + `"`: true, `"` + strings.Repeat("x", 49) + `"`: false, `w/"a"`: false},
		"Idempotency-Key":        {strings.Repeat("k", 255): true, "": false, `"`: false, `a"b`: false, `"a\\"`: true, `"a\n"`: false, "ключ": false, "a b": true},
		"X-Ms-Session-Token":     {"0:-1#1": true, strings.Repeat("0:1,", 2048) + "0:1": false},
		"traceparent":            {strings.Repeat("x", 600): true, "garbage": true},
		"X-Ms-Client-Request-Id": {strings.Repeat("x", 600): true, "two words": true},
	} {
		parameter := parametersOf(doc, operation)[name]
		if parameter == nil {
			t.Errorf("%s is not declared", name)
			continue
		}
		schema := parameter["schema"].(map[string]any)
		for value, good := range values {
			if pattern, ok := schema["pattern"].(string); ok && regexp.MustCompile(pattern).MatchString(value) != good {
				t.Errorf("%s: the pattern matches %q: %t", name, value, !good)
			}
			if limit, ok := schema["maxLength"].(float64); ok && !good && len(value) <= int(limit) {
				t.Errorf("%s: %q is within the limit that is declared", name, value)
			}
			got := a.do(http.MethodPost, path+"/update-email", `{"email":null}`, name, value)
			if refused := got.status == 400; refused == good {
				t.Errorf("%s: %.60q is answered %d %s", name, value, got.status, got.body)
			}
			if _, limited := schema["maxLength"]; good && !limited && schema["pattern"] == nil && got.status >= 300 {
				t.Errorf("%s without a limit: %d", name, got.status)
			}
		}
	}
	if id := parametersOf(doc, operation)["id"]["schema"].(map[string]any); !regexp.MustCompile(id["pattern"].(string)).MatchString(path[len("/api/contacts/"):]) {
		t.Error("the pattern of ids does not match one")
	}
}

// Every address that does not answer 404 or 405 is in the document.
func TestRoutesAreDocumented(t *testing.T) {
	a := start(t, nil)
	path, _ := a.create()
	for template, item := range document(t, a)["paths"].(map[string]any) {
		at := strings.Replace(template, "{id}", path[len("/api/contacts/"):], 1)
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			got := a.do(method, at, "")
			_, documented := item.(map[string]any)[strings.ToLower(method)]
			if documented == (got.status == 405) {
				t.Errorf("%s %s answers %d, documented: %v", method, template, got.status, documented)
			}
			if method == "DELETE" && documented {
				path, _ = a.create()
				at = strings.Replace(template, "{id}", path[len("/api/contacts/"):], 1)
			}
		}
	}
}

func TestDocsPageIsSelfContained(t *testing.T) {
	a := start(t, &httpapi.Options{Auth: apiKeys(t)})
	page := a.do(http.MethodGet, "/docs", "")
	if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || strings.Contains(page.body, "://") {
		t.Fatalf("%d %v %s", page.status, page.header, page.body)
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "script-src") {
		t.Errorf("policy %q", policy)
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page.body, -1)
	if len(links) < 4 {
		t.Fatalf("the page loads only %v", links)
	}
	for _, link := range links {
		if got := a.do(http.MethodGet, link[1], ""); got.status != 200 || len(got.body) == 0 {
			t.Errorf("%s: %d", link[1], got.status)
		}
	}
	for path, want := range map[string]int{"/docs/": 404, "/docs/nothing.js": 404, "/docs/swagger-ui.css.gz": 404} {
		if got := a.do(http.MethodGet, path, ""); got.status != want {
			t.Errorf("%s: %d", path, got.status)
		} else {
			problemOf(t, got)
		}
	}
	if got := a.do(http.MethodPost, "/docs", "{}"); got.status != 405 || got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /docs: %d", got.status)
	}
}
