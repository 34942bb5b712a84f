package cosmosemu_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// sendPolicy creates or replaces a container with an indexing policy.
func sendPolicy(t *testing.T, srv *cosmosemu.Server, method, id, policy, more string) answer {
	t.Helper()
	link := "dbs/db/colls"
	if method == http.MethodPut {
		link += "/" + id
	}
	return send(t, srv, method, link, fmt.Sprintf(`{"id":%q,"partitionKey":{"paths":["/pk"]},"indexingPolicy":%s%s}`, id, policy, more), nil)
}

func TestInvalidIndexingPoliciesAreRefused(t *testing.T) {
	srv := cosmosemu.StartT(t)
	must(t, srv.CreateDatabase("db"))
	const all = `"excludedPaths":[{"path":"/*"}]`
	for i, c := range []struct{ policy, more, want string }{
		{`{"includedPaths":[{"path":"/a/?"}]}`, "", "mandatory indexing path"},
		{`{"excludedPaths":[{"path":"/a/?"}],"includedPaths":[]}`, "", "mandatory indexing path"},
		{`{` + all + `,"includedPaths":[{"path":"/a"}]}`, "", "could not be accepted, failed near position '2'"},
		{`{` + all + `,"includedPaths":[{"path":"a/?"}]}`, "", "failed near position '0'"},
		{`{` + all + `,"includedPaths":[{"path":"/a-b/?"}]}`, "", "failed near position '2'"},
		{`{` + all + `,"includedPaths":[{"path":"/a/*/b/?"}]}`, "", "failed near position '3'"},
		{`{` + all + `,"includedPaths":[{"path":"/?"}]}`, "", "failed near position '1'"},
		{`{` + all + `,"compositeIndexes":[[{"path":"/a"}]]}`, "", "it needs 2 to 8"},
		{`{` + all + `,"compositeIndexes":[[{"path":"/a/*"},{"path":"/b"}]]}`, "", "could not be accepted"},
		{`{` + all + `,"compositeIndexes":[[{"path":"/a","order":"up"},{"path":"/b"}]]}`, "", "not ascending or descending"},
		{`{"indexingMode":"some"}`, "", "not consistent, lazy or none"},
		{`{"indexingMode":"none","automatic":true}`, "", "automatic must be false"},
		{`{"indexingMode":"none"}`, `,"defaultTtl":-1`, "cannot have a defaultTtl"},
	} {
		r := sendPolicy(t, srv, http.MethodPost, fmt.Sprintf("c%d", i), c.policy, c.more)
		if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.Body, c.want) {
			t.Errorf("%s: %d, %s lacks %s", c.policy, r.StatusCode, r.Body, c.want)
		}
	}
	sendPolicy(t, srv, http.MethodPost, "plain", `{}`, "")
	if r := sendPolicy(t, srv, http.MethodPut, "plain", `{"includedPaths":[{"path":"/a"}]}`, ""); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a replace with an invalid policy: %d", r.StatusCode)
	}
	for i, policy := range []string{
		`{}`, `null`, `{"indexingMode":"None","automatic":false}`, `{"includedPaths":[{"path":"/"}]}`, `{"indexingMode":"lazy","excludedPaths":[{"path":"/*"}]}`,
		`{"includedPaths":[{"path":"/*"},{"path":"/\"a-b\"/c/?"},{"path":"/tags/[]/name/?"}],"compositeIndexes":[[{"path":"/a"},{"path":"/b/?","order":"Descending"}]]}`,
	} {
		if r := sendPolicy(t, srv, http.MethodPost, fmt.Sprintf("v%d", i), policy, ""); r.StatusCode != http.StatusCreated {
			t.Errorf("%s: %d %s", policy, r.StatusCode, r.Body)
		}
	}
}

func TestQueriesNeedTheirIndexes(t *testing.T) {
	const (
		excluded = "order-by item is excluded"
		pair     = "does not have a corresponding composite index"
		scan     = "filters against path(s) excluded from indexing"
		some     = `{"excludedPaths":[{"path":"/*"}],"includedPaths":[{"path":"/a/*"},{"path":"/b/?"},{"path":"/tags/[]/?"}]}`
		most     = `{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/a/*"}],"compositeIndexes":[[{"path":"/b"},{"path":"/c/d","order":"descending"}]]}`
		computed = `,"computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.b) FROM c"}]`
		none     = `{"indexingMode":"none"}`
	)
	for _, c := range []struct{ policy, more, query, want string }{
		{`{}`, "", "SELECT * FROM c ORDER BY c.a", ""},
		{`{}`, "", "SELECT * FROM c ORDER BY c.a, c.b", pair},
		{`{}`, "", "SELECT * FROM c ORDER BY c._etag", excluded},
		{`{"includedPaths":[{"path":"/*"},{"path":"/_etag/?"}]}`, "", "SELECT * FROM c ORDER BY c._etag", ""},
		{some, "", "SELECT * FROM c ORDER BY c.a", ""},
		{some, "", "SELECT * FROM c ORDER BY c.a.x.y", ""},
		{some, "", "SELECT * FROM c ORDER BY c.b", ""},
		{some, "", "SELECT * FROM c ORDER BY c.b.x", excluded},
		{some, "", "SELECT * FROM c ORDER BY c.tags[0]", ""},
		{some, "", "SELECT * FROM c ORDER BY c.id", ""},
		{some, "", "SELECT * FROM c ORDER BY c._ts DESC", ""},
		{some, "", "SELECT * FROM c ORDER BY c.pk", excluded},
		{some, "", "SELECT * FROM c WHERE c.other = 1", ""}, // all documents are read
		{most, "", "SELECT * FROM c ORDER BY c.a", excluded},
		{most, "", "SELECT * FROM c ORDER BY c.b", ""},
		{most, "", "SELECT * FROM c ORDER BY c.b, c.c.d DESC", ""},
		{most, "", "SELECT * FROM c ORDER BY c.b DESC, c.c.d", ""},
		{most, "", "SELECT * FROM c ORDER BY c.b, c.c.d", pair},
		{most, "", "SELECT * FROM c ORDER BY c.c.d DESC, c.b", pair},
		{most, "", "SELECT * FROM c ORDER BY c.b, c.c.d DESC, c.id", pair},
		{most, "", "SELECT * FROM (SELECT c.b, c.c FROM c) AS d ORDER BY d.b, d.c.d DESC", pair},
		{most, "", "SELECT * FROM (SELECT c.a FROM c) AS d ORDER BY d.a", ""},
		{none, "", "SELECT * FROM (SELECT c.a FROM c WHERE c.a = 1) AS d", scan},
		{`{"includedPaths":[{"path":"/*"}]}`, computed, "SELECT * FROM c ORDER BY c.low", excluded},
		{`{"includedPaths":[{"path":"/*"},{"path":"/low/?"}]}`, computed, "SELECT * FROM c ORDER BY c.low", ""},
		{none, "", "SELECT * FROM c", ""},
		{none, "", "SELECT * FROM c WHERE true", ""},
		{none, "", "SELECT * FROM c WHERE c.a = 1", scan},
		{none, "", "SELECT * FROM c ORDER BY c.id", excluded},
		{none, "", "SELECT * FROM c ORDER BY c.a, c.b", pair},
	} {
		for _, ignored := range []bool{false, true} {
			srv := cosmosemu.StartT(t, &cosmosemu.Options{IgnoreIndexingPolicy: ignored})
			must(t, srv.CreateDatabase("db"))
			if r := sendPolicy(t, srv, http.MethodPost, "c", c.policy, c.more); r.StatusCode != http.StatusCreated {
				t.Fatalf("%s: %d %s", c.policy, r.StatusCode, r.Body)
			}
			headers := map[string]string{"x-ms-documentdb-query": "true", "content-type": "application/query+json", "x-ms-documentdb-partitionkey": `["a"]`}
			want, status := c.want, http.StatusOK
			if ignored {
				want = ""
			}
			if want != "" {
				status = http.StatusBadRequest
			}
			r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"query":%q}`, c.query), headers)
			if r.StatusCode != status || !strings.Contains(r.Body, want) {
				t.Errorf("%s on %s (ignored: %v): %d %s, want %d %s", c.query, c.policy, ignored, r.StatusCode, r.Body, status, want)
			}
			if headers["x-ms-documentdb-query-enable-scan"] = "True"; c.want == scan {
				if r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"query":%q}`, c.query), headers); r.StatusCode != http.StatusOK {
					t.Errorf("%s with an allowed scan: %d %s", c.query, r.StatusCode, r.Body)
				}
			}
		}
	}
}
