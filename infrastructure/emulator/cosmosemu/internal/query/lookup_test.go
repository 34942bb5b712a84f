package query

import (
	"fmt"
	"strings"
	"testing"
)

// show formats lookups as id or id@key.
func show(at []Lookup, ok bool) string {
	if !ok {
		return "scan"
	}
	var parts []string
	for _, l := range at {
		s := l.ID
		if l.PartitionKey != nil {
			s += "@" + showKey(l.PartitionKey)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func showKey(key []Value) string {
	var parts []string
	for _, v := range key {
		if v.Kind() == Undefined {
			parts = append(parts, "undefined")
			continue
		}
		parts = append(parts, string(v.AppendJSON(nil)))
	}
	return strings.Join(parts, ",")
}

func TestLookups(t *testing.T) {
	pk, id, two := []string{"/pk"}, []string{"/id"}, []string{"/a", "/b/c"}
	params := Params{"@i": []byte(`"x"`), "@j": []byte(`"y"`), "@p": []byte(`"k"`), "@n": []byte(`7`), "@list": []byte(` ["x", 7, "y"] `)}
	for _, tt := range []struct {
		where string
		paths []string
		want  string
	}{
		{`c.id = 'x'`, pk, `x`},
		{`'x' = c.id`, pk, `x`},
		{`c["id"] = @i`, pk, `x`},
		{`c.id = 'x'`, id, `x@"x"`},
		{`c.id IN (@i, @j, 'x')`, pk, `x y`},
		{`c.id IN ('x')`, id, `x@"x"`},
		{`c.pk = @p AND c.id IN (@i, @j)`, pk, `x@"k" y@"k"`},
		{`IS_NULL(c.pk) AND c.id IN (@i, @j)`, pk, `x@null y@null`},
		{`NOT IS_DEFINED(c.pk) AND c.id = 'x'`, pk, `x@undefined`},
		{`c.id = 'x' AND c.pk = 7`, pk, `x@7`},
		{`c.id = 'x' AND c.pk IN (7)`, pk, `x@7`},
		{`c.id = 'x' AND c.pk IN (7, 8)`, pk, `x`},
		{`c.id = 'x' AND c.pk > 7`, pk, `x`},
		{`c.id = 'x' AND c.pk = [7]`, pk, `x`},
		{`c.id = 'x' AND c.a = 1 AND c["b"]["c"] = true`, two, `x@1,true`},
		{`c.id = 'x' AND c.a = 1`, two, `x`},
		{`c.n = 1 AND (c.id = 'x' AND c.pk = 'k')`, pk, `x@"k"`},
		{`(c.id = @i AND c.pk = @p) OR (c.id = @j AND c.pk = @n)`, pk, `x@"k" y@7`},
		{`(c.id = @i AND c.pk = @p) OR (c.id = @i AND c.pk = @p)`, pk, `x@"k"`},
		{`(c.id = @i AND IS_NULL(c.pk)) OR c.id = @j`, pk, `x@null y`},
		{`c.pk = 'k' AND (c.id = 'x' OR c.id = 'y')`, pk, `x@"k" y@"k"`},
		{`c.id = CONCAT('x', 'y')`, pk, `xy`},
		{`c.id = 7`, pk, ``},
		{`ARRAY_CONTAINS(@list, c.id)`, pk, `x y`},
		{`ARRAY_CONTAINS(['x'], c.id) AND c.pk = 1`, pk, `x@1`},
		{`ARRAY_CONTAINS('x', c.id)`, pk, ``},
		{`c.id = undefined`, pk, ``},
		{`c.id IN (7, 'x', null)`, pk, `x`},
		{`c.id = 'x' AND c.id = 'y'`, pk, `x`},

		{`c.id = 'x' OR c.n = 1`, pk, `scan`},
		{`c.id != 'x'`, pk, `scan`},
		{`c.id > 'x'`, pk, `scan`},
		{`NOT (c.id = 'x')`, pk, `scan`},
		{`c.id NOT IN ('x')`, pk, `scan`},
		{`ARRAY_CONTAINS(c.list, c.id)`, pk, `scan`},
		{`ARRAY_CONTAINS(@list, c.id, true)`, pk, `scan`},
		{`ARRAY_CONTAINS(c.id, 'x')`, pk, `scan`},
		{`c.id LIKE 'x'`, pk, `scan`},
		{`c.id = c.pk`, pk, `scan`},
		{`c.id IN ('x', c.pk)`, pk, `scan`},
		{`c.id.x = 'x'`, pk, `scan`},
		{`c.other.id = 'x'`, pk, `scan`},
		{`c.id = 'x' = true`, pk, `scan`},
		{`(c.id = 'x') ?? true`, pk, `scan`},
		{`c.pk = 'x'`, pk, `scan`},
		{`c.pk = 'x'`, id, `scan`},
	} {
		t.Run(tt.where, func(t *testing.T) {
			b := bind(t, "SELECT * FROM c WHERE "+tt.where, params)
			if got := show(b.Lookups(tt.paths)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, ok := bind(t, "SELECT * FROM c", nil).Lookups(pk); ok {
		t.Error("a query without WHERE names documents")
	}
}

func TestPartitionKey(t *testing.T) {
	for _, tt := range []struct {
		where string
		paths []string
		want  string
	}{
		{`c.pk = '1'`, []string{"/pk"}, `"1"`},
		{`c.pk = '1' AND c.x > 2`, []string{"/pk"}, `"1"`},
		{`c.pk = 1.50 OR c.x = 2`, []string{"/pk"}, ``},
		{`c.pk IN (true)`, []string{"/pk"}, `true`},
		{`c.pk IN (1, 2)`, []string{"/pk"}, ``},
		{`IS_NULL(c.pk)`, []string{"/pk"}, `null`},
		{`NOT IS_DEFINED(c.pk)`, []string{"/pk"}, `undefined`},
		{`c.pk != '1'`, []string{"/pk"}, ``},
		{`c.id = 'x'`, []string{"/id"}, `"x"`},
		{`c.a = 1 AND c.b.c = 2`, []string{"/a", "/b/c"}, `1,2`},
		{`c.b["c"] = 2 AND c.a = 1`, []string{"/a", "/b/c"}, `1,2`},
		{`c.a = 'parent1'`, []string{"/a", "/b/c"}, `"parent1"`},
		{`c.b.c = 2`, []string{"/a", "/b/c"}, ``},
		{`c["x/y"] = 2`, []string{`/"x/y"`}, `2`},
		{`c["x/y"].z = 2`, []string{`/"x/y"/z`}, `2`},
		{`c.pk = c.x`, []string{"/pk"}, ``},
		{`c.pk = {}`, []string{"/pk"}, ``},
	} {
		t.Run(tt.where, func(t *testing.T) {
			b := bind(t, "SELECT * FROM c WHERE "+tt.where, nil)
			if got := showKey(b.PartitionKey(tt.paths)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if key := bind(t, "SELECT * FROM c", nil).PartitionKey([]string{"/pk"}); key != nil {
		t.Errorf("no WHERE pins %v", key)
	}
}

// Sources of the cases: QueryPlanBaselineTests of the .NET SDK, ManyRanges and Basic.
func TestKeysThatAConditionAllows(t *testing.T) {
	one, two := []string{"/pk"}, []string{"/a", "/b"}
	for _, tt := range []struct {
		where string
		paths []string
		want  string
	}{
		{`c.pk IN (1, 2, 1.0)`, one, `1 2`},
		{`c.pk = 1 OR c.pk = "a"`, one, `1 "a"`},
		{`c.pk = 1 OR c.x = 2`, one, `any`},
		{`c.pk = 1 AND c.pk = 2`, one, `none`},
		{`c.pk IN (1, 2, 3) AND c.pk IN (3, 2, 5)`, one, `2 3`},
		{`ARRAY_CONTAINS([1, 2, 3], c.pk) AND c.pk = 4`, one, `none`},
		{`ARRAY_CONTAINS([1, 2], c.pk)`, one, `1 2`},
		{`c.pk IN (1, [2])`, one, `any`},
		{`IS_BOOL(c.pk)`, one, `false true`},
		{`c.pk`, one, `true`},
		{`NOT c.pk`, one, `false`},
		{`false`, one, `none`},
		{`1`, one, `none`},
		{`true`, one, `any`},
		{`c.pk = 1 AND false`, one, `none`},
		{`c.x > 1 AND (c.pk = 1 OR c.pk = 2)`, one, `1 2`},
		{`(c.pk = 1 OR false) AND c.x = 1`, one, `1`},
		{`c.pk != 1`, one, `any`},
		{`NOT IS_DEFINED(c.pk) OR c.pk = null`, one, `undefined null`},
		{`c.a IN (1, 2) AND c.b IN (3, 4)`, two, `1,3 1,4 2,3 2,4`},
		{`c.a = 1 OR (c.a = 2 AND c.b = 3)`, two, `1 2,3`},
		{`c.b = 3`, two, `any`},
		{`c.pk IN (` + strings.TrimSuffix(strings.Repeat("1,", 20), ",") + `)`, one, `1`},
	} {
		t.Run(tt.where, func(t *testing.T) {
			b := bind(t, "SELECT * FROM c WHERE "+tt.where, nil)
			keys, ok := b.Keys(tt.paths)
			got := "any"
			if ok {
				got = "none"
			}
			for i, key := range keys {
				if i == 0 {
					got = ""
				}
				got = strings.TrimSpace(got + " " + showKey(key))
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			for _, v := range []string{`1`, `2`, `3`, `4`, `5`, `"a"`, `true`, `false`, `null`, `[2]`} { // no accepted document has another key
				doc := fmt.Appendf(nil, `{"pk":%s,"a":%s,"b":3,"x":2}`, v, v)
				key := v + ",3"
				allowed := !ok || strings.Contains(" "+got+" ", " "+v+" ") || strings.Contains(" "+got+" ", " "+key+" ")
				if b.Match(doc) && !allowed {
					t.Errorf("%s is accepted, but its key is not among %s", doc, got)
				}
			}
		})
	}
}

// TestReadMany uses an OR that is long enough to be replaced by a table.
func TestReadMany(t *testing.T) {
	params := Params{}
	var terms []string
	for i := range 100 {
		params[fmt.Sprintf("@id%d", i)] = fmt.Appendf(nil, `"id%d"`, i%50)
		params[fmt.Sprintf("@pk%d", i)] = fmt.Appendf(nil, `%d`, i)
		terms = append(terms, fmt.Sprintf("(c.id = @id%d AND c.pk = @pk%d)", i, i))
	}
	b := bind(t, "SELECT * FROM c WHERE "+strings.Join(terms, " OR "), params)
	if _, ok := b.where.(byText); !ok {
		t.Errorf("filter is %T", b.where)
	}
	if at, ok := b.Lookups([]string{"/pk"}); !ok || len(at) != 100 || at[99].ID != "id49" || at[99].PartitionKey[0].Float() != 99 {
		t.Errorf("%d lookups", len(at))
	}
	for doc, want := range map[string]bool{
		`{"id":"id3","pk":3}`:         true,
		`{"id":"id3","pk":53}`:        true,
		`{"id":"id\u0033","pk":53.0}`: true,
		`{"id":"id3","pk":4}`:         false,
		`{"id":"id99","pk":99}`:       false,
		`{"id":3,"pk":3}`:             false,
		`{"pk":3}`:                    false,
		`{"id":"id3"}`:                false,
	} {
		if got := b.Match([]byte(doc)); got != want {
			t.Errorf("%s: %v", doc, got)
		}
	}
}
