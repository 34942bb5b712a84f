package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// fill creates items of two keys, numbered from 0, with n, a type and a list of n%3 tags.
func fill(t *testing.T, c *azcosmos.ContainerClient, count int) {
	t.Helper()
	for i := range count {
		tags := []string{"x", "y", "z"}[:i%3]
		pk := fmt.Sprintf("pk%d", i%2)
		item := doc(fmt.Sprint(i), pk, "n", i, "type", []string{"a", "b", "c"}[i%3], "tags", tags)
		if _, err := c.CreateItem(t.Context(), key(pk), item, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesOfRows pages through queries whose rows are not documents. A page may end between two
// rows of one document.
func TestPagesOfRows(t *testing.T) {
	_, c := start(t, nil)
	fill(t, c, 12)
	for _, q := range []struct{ text, want string }{
		{"SELECT VALUE t FROM t IN c.tags", "x y x x y x"},
		{"SELECT VALUE CONCAT(c.id, t) FROM c JOIN t IN c.tags", "2x 2y 4x 8x 8y 10x"},
		{"SELECT VALUE CONCAT(c.id, t) FROM c JOIN t IN c.tags OFFSET 1 LIMIT 3", "2y 4x 8x"},
		{"SELECT VALUE CONCAT(c.id, t) FROM c JOIN t IN c.tags ORDER BY c.n DESC", "10x 8x 8y 4x 2x 2y"},
		{"SELECT TOP 4 VALUE CONCAT(c.id, t) FROM c JOIN t IN c.tags ORDER BY c.type", "4x 10x 2x 2y"},
		{"SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags", "x y"},
		{"SELECT DISTINCT VALUE t FROM c JOIN t IN c.tags OFFSET 1 LIMIT 5", "y"},
		{"SELECT VALUE COUNT(1) FROM c GROUP BY c.type", "2 2 2"},
		{"SELECT VALUE MAX(c.n) FROM c GROUP BY c.type", "6 8 10"},
		{"SELECT VALUE MAX(c.n) FROM c GROUP BY c.type OFFSET 1 LIMIT 1", "8"},
		{"SELECT VALUE CONCAT(d.t, ToString(d.k)) FROM (SELECT t, COUNT(1) AS k FROM c JOIN t IN c.tags GROUP BY t) AS d", "x4 y2"},
		{"SELECT VALUE d.type FROM (SELECT DISTINCT c.type FROM c) AS d", "a c b"},
		{"SELECT VALUE SUM(d.k) FROM (SELECT COUNT(1) AS k FROM c GROUP BY c.type) AS d", "6"},
		{"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'y')", "2 8"},
		{"SELECT VALUE 1 + 1", "2"},
	} {
		for _, size := range []int32{1, 2, 100} {
			var got []string
			for _, page := range rows(t, c, q.text, key("pk0"), &azcosmos.QueryOptions{PageSizeHint: size}) {
				if len(page) > int(size) {
					t.Errorf("%s: a page of %d rows, wanted %d at most", q.text, len(page), size)
				}
				for _, row := range page {
					got = append(got, strings.Trim(row, `"`))
				}
			}
			if fmt.Sprint(got) != "["+q.want+"]" {
				t.Errorf("%s by %d: %v, want %s", q.text, size, got, q.want)
			}
		}
	}
}

// The gateway serves JOIN, sub-queries and a query without FROM over all partitions.
func TestPlainRowsOverPartitions(t *testing.T) {
	_, c := start(t, &cosmosemu.Options{Partitions: 3})
	fill(t, c, 12)
	for text, want := range map[string]string{
		"SELECT VALUE t FROM t IN c.tags":                                   "[x x y x x y x x y x x y]",
		"SELECT VALUE GetCurrentTimestamp() > 0":                            "[true]",
		"SELECT VALUE d.id FROM (SELECT c.id FROM c) AS d WHERE d.id < '2'": "[0 1 10 11]",
	} {
		var got []string
		for _, page := range rows(t, c, text, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 3}) {
			for _, row := range page {
				got = append(got, strings.Trim(row, `"`))
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

// Source of the ranges: QueryPlanBaselineTests of the .NET SDK.
func TestPlanHasOneRangePerKeyOfWhere(t *testing.T) {
	srv, _ := start(t, &cosmosemu.Options{Partitions: 4})
	must(t, srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "two", PartitionKey: []string{"/a", "/b"}}))
	for _, q := range []struct {
		container, where string
		points, spans    int
	}{
		{"c", "c.pk IN ('a', 'b', 'a')", 2, 0},
		{"c", "c.pk = 'a' OR c.pk = 1 OR c.pk = null", 3, 0},
		{"c", "c.pk = 'a' AND c.pk = 'b'", 1, 0}, // reads nothing, but runs once
		{"c", "false", 1, 0},
		{"c", "c.pk > 'a'", 0, 1},
		{"two", "c.a IN (1, 2)", 0, 2},
		{"two", "c.a IN (1, 2) AND c.b = 3", 2, 0},
		{"two", "c.a = 1 OR (c.a = 1 AND c.b = 2) OR (c.a = 2 AND c.b = 2)", 1, 1},
	} {
		r := send(t, srv, http.MethodPost, "dbs/db/colls/"+q.container+"/docs", fmt.Sprintf(`{"query":%q}`, "SELECT * FROM c WHERE "+q.where),
			map[string]string{"content-type": "application/query+json", "x-ms-cosmos-is-query-plan-request": "True"})
		var plan struct {
			QueryRanges []struct {
				Min, Max                       string
				IsMinInclusive, IsMaxInclusive bool
			}
		}
		must(t, json.Unmarshal([]byte(r.Body), &plan))
		points, spans, end := 0, 0, ""
		for i, at := range plan.QueryRanges {
			if i > 0 && at.Min < end || !at.IsMinInclusive {
				t.Errorf("%s: the ranges are not in order: %s", q.where, r.Body)
			}
			if end = at.Max; at.Min == at.Max && at.IsMaxInclusive {
				points++
			} else {
				spans++
			}
		}
		if points != q.points || spans != q.spans {
			t.Errorf("%s: %d points and %d spans, want %d and %d: %s", q.where, points, spans, q.points, q.spans, r.Body)
		}
	}
}

// A plan that needs a feature which the SDK does not support is refused with its name.
func TestPlanFeatures(t *testing.T) {
	srv, _ := start(t, nil)
	plan := func(text, features string) (int, string) {
		h := map[string]string{
			"content-type": "application/query+json", "x-ms-cosmos-is-query-plan-request": "True",
			"x-ms-cosmos-supported-query-features": features,
		}
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"query":%q}`, text), h)
		return r.StatusCode, r.Body
	}
	const python = "Aggregate,CompositeAggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top"
	for _, q := range []struct{ text, features, missing string }{
		{"SELECT VALUE COUNT(1) FROM c", python, ""},
		{"SELECT COUNT(1) AS k FROM c", python, "Query contained NonValueAggregate, which"},
		{"SELECT COUNT(1) AS k FROM c", "Aggregate, NonValueAggregate", ""},
		{"SELECT c.a FROM c GROUP BY c.a", python, "Query contained GroupBy, which"},
		{"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", python, "Query contained DCount, which"},
		{"SELECT c.a FROM c GROUP BY c.a", "", ""},
	} {
		code, body := plan(q.text, q.features)
		if (code == 200) != (q.missing == "") || !strings.Contains(body, q.missing) {
			t.Errorf("%s with %q: %d %s", q.text, q.features, code, body)
		}
	}
}

// Computed properties have values in queries, survive a restart, and are refused if they are
// malformed.
func TestComputedProperties(t *testing.T) {
	dir := t.TempDir()
	srv, err := cosmosemu.Start(&cosmosemu.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
		t.Fatal(err)
	}
	fill(t, containerOf(t, srv, "c"), 6)
	define := func(list string) answer {
		return send(t, srv, http.MethodPut, "dbs/db/colls/c", `{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"indexingPolicy":{"includedPaths":[{"path":"/*"},{"path":"/up/?"}]},"computedProperties":`+list+`}`, nil)
	}
	for _, bad := range []string{
		`{"name":"x","query":"SELECT VALUE 1 FROM c"}`,
		`[{"query":"SELECT VALUE c.n FROM c"}]`, `[{"name":"x"}]`, `[{"name":"x","query":"SELECT c.n FROM c"}]`,
		`[{"name":"id","query":"SELECT VALUE c.n FROM c"}]`, `[{"name":"pk","query":"SELECT VALUE c.n FROM c"}]`,
		`[{"name":"x","query":"SELECT VALUE 1 FROM c"},{"name":"x","query":"SELECT VALUE 2 FROM c"}]`,
		"[" + strings.TrimSuffix(strings.Repeat(`{"name":"x","query":"SELECT VALUE 1 FROM c"},`, 21), ",") + "]",
	} {
		if a := define(bad); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.StatusCode, a.Body)
		}
	}
	if a := define(`[{"name":"up","query":"SELECT VALUE UPPER(c.type) FROM c"}]`); a.StatusCode != http.StatusOK || !strings.Contains(a.Body, `"up"`) {
		t.Fatalf("%d %s", a.StatusCode, a.Body)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	c := containerOf(t, cosmosemu.StartT(t, &cosmosemu.Options{DataDir: dir}), "c")
	got := rows(t, c, "SELECT VALUE CONCAT(c.id, c.up) FROM c WHERE c.up != 'B' ORDER BY c.up DESC", key("pk0"), nil)
	if fmt.Sprint(got) != `[["2C" "0A"]]` {
		t.Errorf("rows %v", got)
	}
}
