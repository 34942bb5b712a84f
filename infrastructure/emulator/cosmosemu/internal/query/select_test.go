package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func bind(t *testing.T, text string, params Params) *Bound {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	b, err := q.Bind(params)
	if err != nil {
		t.Fatalf("bind %s: %v", text, err)
	}
	return b
}

func TestRows(t *testing.T) {
	const doc = `{ "id":"1", "a":{"b":2, "value":3}, "arr":[7,8] ,"x-y":1}`
	for _, tt := range []struct{ text, want string }{
		{`SELECT * FROM c`, doc},
		{`select * from docs c`, doc},
		{`select * from docs AS c where c.id = '1'`, doc},
		{`SELECT * FROM root r WHERE r.id = "1"`, doc},
		{`SELECT c FROM c`, `{"c":` + doc + `}`},
		{`SELECT VALUE c FROM c`, doc},
		{`SELECT c.id FROM c`, `{"id":"1"}`},
		{`SELECT c["a"].b, c['a']["value"] AS v FROM c`, `{"b":2,"v":3}`},
		{`SELECT c["x-y"], c.arr[0], c.arr[1] FROM c`, `{"x-y":1,"$1":7,"$2":8}`},
		{`SELECT 1, c.id, 'x' AS s, 2 + 3 FROM c`, `{"$1":1,"id":"1","s":"x","$2":5}`},
		{`SELECT {"y": c.id}.y, {"z": 1}["z"], [c.id][0] FROM c`, `{"y":"1","z":1,"$1":"1"}`},
		{`SELECT (SELECT c.id WHERE c.a.b = 2).id, (SELECT c.arr AS l)["l"][1] FROM c`, `{"id":"1","$1":8}`},
		{`SELECT c.nope, c.id FROM c`, `{"id":"1"}`},
		{`SELECT c.nope FROM c`, `{}`},
		{`SELECT VALUE c.nope FROM c`, ``},
		{`SELECT VALUE c.a FROM c`, `{"b":2, "value":3}`},
		{`SELECT VALUE {"id": c.id, "s": [c.a.b, c.nope]} FROM c`, `{"id":"1","s":[2]}`},
		{`SELECT c AS "x" FROM c`, `error`},
		{`SELECT DISTINCT TOP 3 VALUE c.id FROM c -- a comment`, `"1"`},
		{"SELECT --x\n VALUE c.id -- y\r\nFROM c", `"1"`},
		{`SELECT c.größe FROM c`, `{}`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			if tt.want == "error" {
				if _, err := Parse(tt.text); err == nil {
					t.Error("no error")
				}
				return
			}
			if got := run(t, tt.text, doc, nil); got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSelectAllKeepsTheBytes(t *testing.T) {
	doc := []byte(" {\"id\" : \"1\",\n \"n\":1.00 } ")
	b := bind(t, "SELECT * FROM c", nil)
	if row, ok := b.Project([]byte("x"), doc); !ok || string(row) != "x"+string(doc) {
		t.Errorf("row %q", row)
	}
}

func TestParameters(t *testing.T) {
	params := Params{
		"@s": []byte(`"a\u0041"`), "@n": []byte(` 2 `), "@list": []byte(`[1, 2.0]`), "@o": []byte(`{"x":[null]}`),
		"@null": []byte("null"), "@unused": []byte("}"),
	}
	for _, tt := range []struct{ expr, want string }{
		{`@s`, `"a\u0041"`},
		{`@n`, `2`},
		{`@list[1]`, `2.0`},
		{`@o.x[0]`, `null`},
		{`@s = 'aA'`, `true`},
		{`ARRAY_CONTAINS(@list, c.two)`, `true`},
		{`c[@key]`, `2`},
		{`c.two = @n`, `true`},
		{`c.two IN (@s, @n)`, `true`},
		{`@null = null`, `true`},
	} {
		params["@key"] = []byte(`"two"`)
		if got := run(t, "SELECT VALUE "+tt.expr+" FROM c", `{"two":2}`, params); got != tt.want {
			t.Errorf("%s = %s, want %s", tt.expr, got, tt.want)
		}
	}
}

// TestValuesAreBounded repeats a parameter until the value would exceed the memory.
func TestValuesAreBounded(t *testing.T) {
	params := Params{"@p": []byte(`"` + strings.Repeat("a", 1<<18) + `"`)}
	many := strings.TrimSuffix(strings.Repeat("@p, ", 100_000), ", ")
	nested := "@p"
	for range 100 {
		nested = "REPLACE(" + nested + ", 'a', 'aaaa')"
	}
	for name, expr := range map[string]string{
		"array":        "[" + many + "]",
		"nested array": "[[" + many + "], 1]",
		"concat":       "CONCAT(" + many + ")",
		"join":         "StringJoin(StringSplit(CONCAT(@p, @p), 'a'), @p)",
		"replace":      nested,
		"operator":     strings.TrimSuffix(strings.Repeat("@p || ", 200), " || "),
		"arrays":       "ARRAY_CONCAT(" + strings.Repeat("[@p], ", 50_000) + "[])",
	} {
		want := ""
		if name == "nested array" {
			want = "[1]"
		}
		if got := run(t, "SELECT VALUE "+expr+" FROM c", `{}`, params); got != want {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
}

func TestBindErrors(t *testing.T) {
	for _, tt := range []struct {
		text   string
		params Params
		param  string
	}{
		{`SELECT * FROM c WHERE c.a = @a`, nil, "@a"},
		{`SELECT * FROM c WHERE c.a = @a`, Params{"a": []byte("1")}, "@a"},
		{`SELECT * FROM c WHERE c.a = @a`, Params{"@a": []byte("{")}, "@a"},
		{`SELECT * FROM c WHERE c.a = @a`, Params{"@a": nil}, "@a"},
		{`SELECT TOP @n * FROM c`, Params{"@n": []byte(`"3"`)}, "@n"},
		{`SELECT TOP @n * FROM c`, Params{"@n": []byte(`-1`)}, "@n"},
		{`SELECT * FROM c OFFSET @o LIMIT 1`, Params{"@o": []byte(`1.5`)}, "@o"},
		{`SELECT * FROM c OFFSET 1 LIMIT @l`, Params{"@l": []byte(`null`)}, "@l"},
	} {
		q, err := Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Bind(tt.params)
		var bindErr *BindError
		if !errors.As(err, &bindErr) || bindErr.Param != tt.param {
			t.Errorf("%s with %s: %v", tt.text, tt.params, err)
		}
	}
}

func TestWindow(t *testing.T) {
	params := Params{"@a": []byte("3"), "@b": []byte("4")}
	for _, tt := range []struct {
		text string
		want Window
	}{
		{`SELECT * FROM c`, Window{0, -1}},
		{`SELECT TOP 5 * FROM c`, Window{0, 5}},
		{`SELECT TOP 0 * FROM c`, Window{0, 0}},
		{`SELECT TOP @a * FROM c`, Window{0, 3}},
		{`SELECT * FROM c OFFSET 1 LIMIT 2`, Window{1, 2}},
		{`SELECT * FROM c ORDER BY c.x OFFSET @a LIMIT @b`, Window{3, 4}},
	} {
		if got := bind(t, tt.text, params).Window(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Shape
	}{
		{`SELECT c.a FROM c WHERE c.b = 1`, Shape{}},
		{`SELECT * FROM c ORDER BY c.a`, Shape{OrderBy: true}},
		{`SELECT TOP 1 * FROM c`, Shape{Top: true}},
		{`SELECT * FROM c OFFSET 0 LIMIT 1`, Shape{Offset: true}},
		{`SELECT DISTINCT c.a FROM c`, Shape{Distinct: true}},
		{`SELECT VALUE COUNT(1) FROM c`, Shape{Aggregate: true}},
		{`SELECT c.a FROM c GROUP BY c.a`, Shape{GroupBy: true}},
		{`SELECT VALUE t FROM c JOIN t IN c.tags`, Shape{}},
		{`SELECT VALUE d FROM (SELECT c.a FROM c) AS d`, Shape{}},
		{`SELECT VALUE d FROM (SELECT DISTINCT c.a FROM c) AS d`, Shape{Derived: true}},
	} {
		q, err := Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Shape(); got != tt.want || got.Plain() != (tt.want == Shape{}) {
			t.Errorf("%s: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestSource(t *testing.T) {
	for text, want := range map[string][2]string{
		`SELECT * FROM c`:                       {"c", "c"},
		`SELECT * FROM docs AS d WHERE d.a = 1`: {"docs", "d"},
		`SELECT * FROM Families f`:              {"Families", "f"},
	} {
		collection, alias := bind(t, text, nil).Query().Source()
		if got := [2]string{collection, alias}; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestOrder(t *testing.T) {
	values := []string{
		``, `null`, `false`, `true`, `-3`, `2`, `10`, `1e2`, `"A"`, `"B"`, `"a"`, `"é"`, `[1]`, `[1,2]`, `[2]`, `{"a":1}`,
	}
	docs := make([]string, len(values))
	for i, v := range values {
		docs[i] = `{"id":"x"}`
		if v != "" {
			docs[i] = fmt.Sprintf(`{"x":%s}`, v)
		}
	}
	for _, direction := range []string{"", "ASC", "DESC"} {
		b := bind(t, "SELECT * FROM c ORDER BY c.x "+direction, nil)
		got := slices.Clone(docs)
		// Sorting must not depend on the initial order, so rotate first.
		got = append(got[7:], got[:7]...)
		slices.SortFunc(got, func(x, y string) int { return b.Compare(b.SortKey([]byte(x)), b.SortKey([]byte(y))) })
		want := slices.Clone(docs)
		if direction == "DESC" {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s", direction, strings.Join(got, " "))
		}
		if b.Descending() != (direction == "DESC") {
			t.Error("Descending is wrong")
		}
	}
}

func TestOrderBySeveral(t *testing.T) {
	docs := []string{`{"a":2,"b":"x"}`, `{"a":1,"b":"x"}`, `{"a":1,"b":"y"}`, `{"a":1.0}`, `{"b":"z"}`}
	b := bind(t, `SELECT * FROM c ORDER BY c.a DESC, c["b"] ASC`, nil)
	slices.SortFunc(docs, func(x, y string) int { return b.Compare(b.SortKey([]byte(x)), b.SortKey([]byte(y))) })
	want := []string{`{"a":2,"b":"x"}`, `{"a":1.0}`, `{"a":1,"b":"x"}`, `{"a":1,"b":"y"}`, `{"b":"z"}`}
	if !slices.Equal(docs, want) {
		t.Errorf("got %s", strings.Join(docs, " "))
	}
}

func TestSortKeySurvivesAToken(t *testing.T) {
	b := bind(t, `SELECT * FROM c ORDER BY c.a, c.b`, nil)
	for _, tt := range []struct{ doc, token string }{
		{`{"a":1.50,"b":"q\"é"}`, `[[1.50],["q\"é"]]`},
		{`{"b":null}`, `[[],[null]]`},
		{`{"a":[{}],"b":[]}`, `[[[{}]],[[]]]`},
	} {
		key := b.SortKey([]byte(tt.doc))
		if got := string(key.AppendJSON(nil)); got != tt.token {
			t.Errorf("token %s, want %s", got, tt.token)
		}
		back, err := b.ParseSortKey([]byte(tt.token))
		if err != nil || b.Compare(key, back) != 0 {
			t.Errorf("%s: %v, %v", tt.token, back, err)
		}
	}
	for _, bad := range []string{``, `[]`, `[[1]]`, `[[1],[2],[3]]`, `[1,2]`, `[[1],[2,3]]`, `{}`, `[[1],[}]`} {
		if _, err := b.ParseSortKey([]byte(bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestSortKeyIsACopy(t *testing.T) {
	doc := []byte(`{"a":"abc"}`)
	b := bind(t, `SELECT * FROM c ORDER BY c.a`, nil)
	key := b.SortKey(doc)
	copy(doc, `{"a":"zzz"}`)
	if got := key[0].Text(); got != "abc" {
		t.Errorf("key is %q now", got)
	}
}

func TestDistinctKey(t *testing.T) {
	equal := []string{`{"a":1,"b":["\u00e9"]}`, ` {"b" : ["é"], "a":1.0}`, `{"a":1e0,"b":["é"]}`}
	for _, row := range equal {
		if string(DistinctKey(nil, []byte(row))) != string(DistinctKey(nil, []byte(equal[0]))) {
			t.Errorf("%s differs", row)
		}
	}
	if string(DistinctKey(nil, []byte(`[-0.0]`))) != string(DistinctKey(nil, []byte(`[0]`))) {
		t.Error("-0 differs from 0")
	}
	seen := map[string]string{}
	for _, row := range []string{
		`1`, `"1"`, `null`, `true`, `false`, `[]`, `{}`, `[[]]`, `[{}]`, `""`, `[1,2]`, `[12]`, `["a","b"]`, `["ab"]`,
		`{"a":"b"}`, `{"a":{"b":1}}`, `{"a":{},"b":1}`, `0`,
	} {
		key := string(DistinctKey(nil, []byte(row)))
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s are one", row, other)
		}
		seen[key] = row
	}
}

func TestCondition(t *testing.T) {
	q, err := ParseCondition("from c where c.Address.ZipCode ='98101' ")
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Bind(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !b.Match([]byte(`{"Address":{"ZipCode":"98101"}}`)) || b.Match([]byte(`{"Address":{"ZipCode":98101}}`)) {
		t.Error("wrong match")
	}
	for _, bad := range []string{``, `where c.a = 1`, `from c`, `SELECT * FROM c WHERE c.a = 1`, `from c where c.a = 1 order by c.a`, `from c where d.a = 1`} {
		if _, err := ParseCondition(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// TestSystemContainers runs the queries that SDKs send for databases, containers and offers.
func TestSystemContainers(t *testing.T) {
	for _, tt := range []struct {
		text, doc string
		params    Params
	}{
		{`SELECT * FROM c WHERE c.offerResourceId = 'Jx8='`, `{"offerResourceId":"Jx8=","content":{"offerThroughput":400}}`, nil},
		{`SELECT * FROM root WHERE root.resource = "dbs/a==/colls/b=/"`, `{"resource":"dbs/a==/colls/b=/"}`, nil},
		{`SELECT * from root where root.resource = "dbs\/a==\/"`, `{"resource":"dbs\/a==/"}`, nil},
		{`SELECT * FROM root r WHERE r.id = @id`, `{"id":"db1"}`, Params{"@id": []byte(`"db1"`)}},
		{`SELECT * FROM root r WHERE r.id=@id`, `{"id":"db1"}`, Params{"@id": []byte(`"db1"`)}},
		{`select * from dbs d`, `{"id":"db1"}`, nil},
		{`select * from containers c`, `{"id":"db1"}`, nil},
	} {
		if got := run(t, tt.text, tt.doc, tt.params); got != tt.doc {
			t.Errorf("%s: %s", tt.text, got)
		}
		if tt.params != nil {
			tt.params["@id"] = []byte(`"db2"`)
			if got := run(t, tt.text, tt.doc, tt.params); got != "" {
				t.Errorf("%s: %s", tt.text, got)
			}
		}
	}
}
