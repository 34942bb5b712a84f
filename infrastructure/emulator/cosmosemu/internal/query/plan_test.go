package query

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestPlan(t *testing.T) {
	params := Params{"@n": []byte("3"), "@v": []byte(`"v"`)}
	for _, tt := range []struct{ text, want string }{
		{`SELECT * FROM c`, `{"distinctType":"None","hasSelectValue":false,"rewrittenQuery":""}`},
		{`SELECT VALUE c.a FROM c`, `{"distinctType":"None","hasSelectValue":true,"rewrittenQuery":""}`},
		{`SELECT TOP @n * FROM c`, `{"distinctType":"None","top":3,"hasSelectValue":false,"rewrittenQuery":""}`},
		{
			`SELECT * FROM c ORDER BY c.x`,
			`{"distinctType":"None","orderBy":["Ascending"],"orderByExpressions":["c.x"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c AS payload FROM c WHERE (({documentdb-formattableorderbyquery-filter})) ORDER BY c.x ASC"}`,
		},
		{
			`SELECT TOP 5 r.a, r["b c"] AS d FROM root r WHERE r.a = @v OR r.b ORDER BY r.x DESC, r["b c"]`,
			`{"distinctType":"None","top":5,"orderBy":["Descending","Ascending"],"orderByExpressions":["r.x","r[\"b c\"]"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT TOP 5 r._rid, [{\"item\": r.x}, {\"item\": r[\"b c\"]}] AS orderByItems, {\"a\": r.a, \"d\": r[\"b c\"]} AS payload FROM root r WHERE (((r.a = @v) OR r.b) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY r.x DESC, r[\"b c\"] ASC"}`,
		},
		{
			`SELECT VALUE c.x FROM c WHERE c.a = 1 ORDER BY c.x OFFSET @n LIMIT 4`,
			`{"distinctType":"None","offset":3,"limit":4,"orderBy":["Ascending"],"orderByExpressions":["c.x"],"hasSelectValue":true,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c.x AS payload FROM c WHERE ((c.a = 1) AND IS_DEFINED(c.x) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.x ASC OFFSET 0 LIMIT 7"}`,
		},
		{
			`SELECT * FROM c WHERE c.a = 1 OFFSET 2 LIMIT 4`,
			`{"distinctType":"None","offset":2,"limit":4,"hasSelectValue":false,"rewrittenQuery":"SELECT * FROM c WHERE c.a = 1 OFFSET 0 LIMIT 6"}`,
		},
		{
			`SELECT * FROM c OFFSET 2147483647 LIMIT 4`,
			`{"distinctType":"None","offset":2147483647,"limit":4,"hasSelectValue":false,"rewrittenQuery":"SELECT * FROM c OFFSET 0 LIMIT 2147483647"}`,
		},
		{`SELECT DISTINCT c.a FROM c`, `{"distinctType":"Unordered","hasSelectValue":false,"rewrittenQuery":""}`},
		{`SELECT DISTINCT VALUE 1 FROM c`, `{"distinctType":"Unordered","hasSelectValue":true,"rewrittenQuery":""}`},
		{`SELECT DISTINCT VALUE 1`, `{"distinctType":"None","hasSelectValue":true,"rewrittenQuery":""}`},
		{`SELECT DISTINCT TOP 5 c.a FROM c`, `{"distinctType":"Unordered","top":5,"hasSelectValue":false,"rewrittenQuery":"SELECT DISTINCT c.a FROM c"}`},
		{
			`SELECT DISTINCT c.a FROM c WHERE c.b OFFSET 2 LIMIT 3`,
			`{"distinctType":"Unordered","offset":2,"limit":3,"hasSelectValue":false,"rewrittenQuery":"SELECT DISTINCT c.a FROM c WHERE c.b"}`,
		},
		{
			`SELECT DISTINCT c.x FROM c ORDER BY c.x`,
			`{"distinctType":"Unordered","orderBy":["Ascending"],"orderByExpressions":["c.x"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, {\"x\": c.x} AS payload FROM c WHERE (({documentdb-formattableorderbyquery-filter})) ORDER BY c.x ASC"}`,
		},
		{
			`SELECT DISTINCT TOP 2 VALUE c.x FROM c ORDER BY c.x`,
			`{"distinctType":"Ordered","top":2,"orderBy":["Ascending"],"orderByExpressions":["c.x"],"hasSelectValue":true,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c.x AS payload FROM c WHERE (IS_DEFINED(c.x) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.x ASC"}`,
		},
		{
			`SELECT DISTINCT c.a, c.b FROM c ORDER BY c.a`,
			`{"distinctType":"Unordered","orderBy":["Ascending"],"orderByExpressions":["c.a"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"a\": c.a, \"b\": c.b} AS payload FROM c WHERE (({documentdb-formattableorderbyquery-filter})) ORDER BY c.a ASC"}`,
		},
		{
			`SELECT DISTINCT c.a FROM c ORDER BY c.a, c.b`,
			`{"distinctType":"Unordered","orderBy":["Ascending","Ascending"],"orderByExpressions":["c.a","c.b"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.a}, {\"item\": c.b}] AS orderByItems, {\"a\": c.a} AS payload FROM c WHERE (({documentdb-formattableorderbyquery-filter})) ORDER BY c.a ASC, c.b ASC"}`,
		},
		{
			`SELECT VALUE COUNT(1) FROM c WHERE c.a = @v`,
			`{"distinctType":"None","aggregates":["Count"],"hasSelectValue":true,"rewrittenQuery":"SELECT VALUE [{\"item\": COUNT(1)}] FROM c WHERE c.a = @v"}`,
		},
		{
			`SELECT COUNT(1) AS n, COUNT(c.a) FROM c`,
			`{"distinctType":"None","groupByAliases":["n","$1"],"groupByAliasToAggregateType":{"n":"Count","$1":"Count"},"hasSelectValue":false,
			"rewrittenQuery":"SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": {\"item\": COUNT(c.a)}} AS payload FROM c"}`,
		},
		{
			`SELECT VALUE AVG(c.a) FROM c`,
			`{"distinctType":"None","aggregates":["Average"],"hasSelectValue":true,"rewrittenQuery":"SELECT VALUE [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}] FROM c"}`,
		},
		{
			`SELECT TOP 1 VALUE MIN(c.a) FROM c ORDER BY c.b`,
			`{"distinctType":"None","top":1,"aggregates":["Min"],"hasSelectValue":true,
			"rewrittenQuery":"SELECT VALUE [{\"item\": MIN(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": COUNT(c.a)}}] FROM c"}`,
		},
		{
			`SELECT 'x' AS kind, MAX(c.a) AS m FROM c`,
			`{"distinctType":"None","groupByAliases":["kind","m"],"groupByAliasToAggregateType":{"kind":null,"m":"Max"},"hasSelectValue":false,
			"rewrittenQuery":"SELECT {\"kind\": \"x\", \"m\": {\"item\": MAX(c.a), \"item2\": {\"max\": MAX(c.a), \"count\": COUNT(c.a)}}} AS payload FROM c"}`,
		},
		{
			`SELECT c.g, SUM(t) AS s FROM c JOIN t IN c.l WHERE c.a = @v GROUP BY c.g OFFSET 1 LIMIT 2`,
			`{"distinctType":"None","offset":1,"limit":2,"groupByExpressions":["c.g"],"groupByAliases":["g","s"],
			"groupByAliasToAggregateType":{"g":null,"s":"Sum"},"hasSelectValue":false,
			"rewrittenQuery":"SELECT [{\"item\": c.g}] AS groupByItems, {\"g\": c.g, \"s\": {\"item\": SUM(t)}} AS payload FROM c JOIN t IN c.l WHERE c.a = @v GROUP BY c.g"}`,
		},
		{
			`SELECT VALUE COUNT(1) FROM c GROUP BY c.g`,
			`{"distinctType":"None","groupByExpressions":["c.g"],"aggregates":["Count"],"hasSelectValue":true,
			"rewrittenQuery":"SELECT [{\"item\": c.g}] AS groupByItems, [{\"item\": COUNT(1)}] AS payload FROM c GROUP BY c.g"}`,
		},
		{
			`SELECT DISTINCT c.g FROM c GROUP BY c.g`,
			`{"distinctType":"Unordered","groupByExpressions":["c.g"],"groupByAliases":["g"],"groupByAliasToAggregateType":{"g":null},"hasSelectValue":false,
			"rewrittenQuery":"SELECT [{\"item\": c.g}] AS groupByItems, {\"g\": c.g} AS payload FROM c GROUP BY c.g"}`,
		},
		{
			`SELECT VALUE c.g FROM c GROUP BY c.g`,
			`{"distinctType":"None","groupByExpressions":["c.g"],"hasSelectValue":true,
			"rewrittenQuery":"SELECT [{\"item\": c.g}] AS groupByItems, c.g AS payload FROM c GROUP BY c.g"}`,
		},
		{
			`SELECT c.id, t FROM c JOIN t IN c.l WHERE EXISTS(SELECT VALUE 1) ORDER BY c.x`,
			`{"distinctType":"None","orderBy":["Ascending"],"orderByExpressions":["c.x"],"hasSelectValue":false,
			"rewrittenQuery":"SELECT c._rid, [{\"item\": c.x}] AS orderByItems, {\"id\": c.id, \"t\": t} AS payload FROM c JOIN t IN c.l WHERE ((EXISTS(SELECT VALUE 1)) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.x ASC"}`,
		},
		{
			`SELECT COUNT(1) AS k FROM (SELECT DISTINCT VALUE c.a FROM c WHERE c.b = @v) AS d`,
			`{"distinctType":"Unordered","hasSelectValue":false,"dCountInfo":{"dCountAlias":"k"},"rewrittenQuery":"SELECT DISTINCT VALUE c.a FROM c WHERE c.b = @v"}`,
		},
	} {
		t.Run(tt.text, func(t *testing.T) {
			info, err := bind(t, tt.text, params).Info()
			if err != nil {
				t.Fatal(err)
			}
			want := QueryInfo{
				OrderBy: []string{}, OrderByExpressions: []string{}, GroupByExpressions: []string{},
				GroupByAliases: []string{}, Aggregates: []string{}, GroupByAliasToAggregateType: map[string]*string{},
			}
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(info)
			expected, _ := json.Marshal(want)
			if string(got) != string(expected) {
				t.Errorf("got  %s\nwant %s", got, expected)
			}
			if info.RewrittenQuery == "" {
				return
			}
			if len(info.OrderBy) == 0 && strings.Contains(info.RewrittenQuery, FilterPlaceholder) {
				t.Error("a placeholder, and no order to resume in")
			}
			filled := strings.Replace(info.RewrittenQuery, FilterPlaceholder, "true", 1)
			if _, err := Parse(filled); err != nil {
				t.Errorf("the rewritten query does not parse: %v", err)
			}
		})
	}
}

func TestPlanUnsupported(t *testing.T) {
	for _, text := range []string{
		`SELECT VALUE COUNT(1) + 1`,
		`SELECT DISTINCT c.g, COUNT(1) FROM c GROUP BY c.g`,
		`SELECT DISTINCT c.g FROM c GROUP BY c.g, c.h`,
		`SELECT DISTINCT c.g.x FROM c GROUP BY c.g`,
		`SELECT VALUE SUM(d) FROM (SELECT DISTINCT VALUE c.a FROM c) AS d`,
		`SELECT VALUE d FROM (SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g) AS d`,
		`SELECT VALUE d FROM (SELECT c.a FROM c) AS d ORDER BY d.a`,
	} {
		var unsupported *UnsupportedError
		if _, err := bind(t, text, nil).Info(); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A plan needs the values of TOP, OFFSET and LIMIT only. A parameter without a value pins no key.
func TestPlanOfMissingParameters(t *testing.T) {
	plan := func(text string) (*Bound, error) {
		q, err := ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		return q.Bind(Params{"@a": []byte("1")})
	}
	b, err := plan(`SELECT * FROM c WHERE c.a = @a AND c.b = @b AND c.d = CONCAT("x", @d)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Info(); err != nil {
		t.Error(err)
	}
	if key := b.PartitionKey([]string{"/a", "/b"}); len(key) != 1 {
		t.Errorf("the key %v has a value that is unknown", key)
	}
	for _, text := range []string{`SELECT * FROM c WHERE c.id = @b`, `SELECT * FROM c WHERE c.id = CONCAT("x", @d)`, `SELECT * FROM c WHERE c.id IN ("x", @d)`} {
		if b, err := plan(text); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if at, ok := b.Lookups([]string{"/a"}); ok {
			t.Errorf("%s names the documents %v", text, at)
		}
	}
	for _, text := range []string{`SELECT TOP @n * FROM c`, `SELECT * FROM c OFFSET 1 LIMIT @n`, `SELECT * FROM c OFFSET @n LIMIT 1`} {
		var bad *BindError
		if _, err := plan(text); !errors.As(err, &bad) || bad.Param != "@n" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What only the service can run, or may read otherwise, has a plan, unless the plan would choose
// a meaning. It is refused when it runs.
func TestPlanOfWhatDoesNotRunHere(t *testing.T) {
	for text, planned := range map[string]bool{
		`SELECT VALUE udf.f(c.a) FROM c`:                  true,
		`SELECT udf.f() AS r FROM c WHERE udf.g(1, c.a)`:  true,
		`SELECT * FROM c WHERE c.a = udf.f("x")`:          true,
		`SELECT * FROM c WHERE udf.f(c.a) ORDER BY c.b`:   true,
		`SELECT * FROM c WHERE c.a & 4 != 0`:              true,
		`SELECT * FROM c WHERE NOT c.a = 1`:               true,
		`SELECT * FROM c WHERE c.a & 4 != 0 ORDER BY c.b`: false,
		`SELECT udf.f(COUNT(1)) FROM c`:                   false,
	} {
		if q, err := Parse(text); err == nil {
			t.Errorf("%s runs: %v", text, q)
		}
		q, err := ParsePlan(text)
		if err == nil {
			b, bindErr := q.Bind(nil)
			if err = bindErr; err == nil {
				if key := b.PartitionKey([]string{"/a"}); len(key) > 0 {
					t.Errorf("%s: the key is %v", text, key)
				}
				_, err = b.Info()
			}
		}
		if (err == nil) != planned {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRewrittenQueryRuns uses a plan as an SDK does: it replaces the placeholder by a condition
// and reads orderByItems and payload.
func TestRewrittenQueryRuns(t *testing.T) {
	b := bind(t, `SELECT VALUE {"v": c.x} FROM c WHERE c.on ORDER BY c.x DESC`, nil)
	info, err := b.Info()
	if err != nil {
		t.Fatal(err)
	}
	const doc = `{"_rid":"r1","on":true,"x":"it's"}`
	for filter, want := range map[string]string{
		`true`:                   `{"_rid":"r1","orderByItems":[{"item":"it's"}],"payload":{"v":"it's"}}`,
		`(c.x <= 'it\u0027s')`:   `{"_rid":"r1","orderByItems":[{"item":"it's"}],"payload":{"v":"it's"}}`,
		`(c.x < 'it\u0027s')`:    ``,
		`(c.x >= null)`:          ``,
		`(c.x > 'a' AND c.y<=1)`: ``,
	} {
		text := strings.Replace(info.RewrittenQuery, FilterPlaceholder, filter, 1)
		if got := run(t, text, doc, nil); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	text := strings.Replace(info.RewrittenQuery, FilterPlaceholder, "true", 1)
	if got, want := run(t, text, `{"_rid":"r2","on":true}`, nil), `{"_rid":"r2","orderByItems":[{}],"payload":{}}`; got != want {
		t.Errorf("without the key: %s", got)
	}
}

func TestPlanFeatures(t *testing.T) {
	for text, want := range map[string]string{
		`SELECT * FROM c`:                                               ``,
		`SELECT VALUE COUNT(1) FROM c`:                                  `Aggregate`,
		`SELECT COUNT(1) AS k FROM c`:                                   `Aggregate NonValueAggregate`,
		`SELECT MIN(c.a), MAX(c.a) FROM c`:                              `Aggregate NonValueAggregate MultipleAggregates`,
		`SELECT VALUE AVG(c.a) FROM c`:                                  `Aggregate`,
		`SELECT c.g FROM c GROUP BY c.g`:                                `GroupBy`,
		`SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g`:                 `Aggregate GroupBy`,
		`SELECT VALUE COUNTIF(c.a) FROM c`:                              `Aggregate CountIf`,
		`SELECT VALUE MAKESET(c.a) FROM c`:                              `Aggregate`,
		`SELECT DISTINCT TOP 3 c.a FROM c ORDER BY c.a, c.b`:            `Distinct OrderBy MultipleOrderBy Top`,
		`SELECT * FROM c OFFSET 1 LIMIT 1`:                              `OffsetAndLimit`,
		`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)`: `Distinct DCount`,
	} {
		info, err := bind(t, text, nil).Info()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(info.Features(), " "); got != want {
			t.Errorf("%s needs %s, want %s", text, got, want)
		}
	}
}
