package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"feedbox/tests/fuzzseed"
)

// queries seed the fuzzers: one of each construct.
var queries = []string{
	`SELECT * FROM c`,
	`SELECT DISTINCT TOP 5 c.a, c["b c"][0].d AS x, 1.5e3, 'q\'' FROM docs c WHERE c.a = @a ORDER BY c.a DESC, c.b`,
	`select value {"a": [c.a, {}, [], undefined], 'b': c.b ?? null} from root r_1 where true`,
	`SELECT VALUE c.a ? (c.b ?? 1) : -c.c FROM c OFFSET 1 LIMIT @a`,
	`SELECT COUNT(1) AS n, COUNT(c.a) FROM c WHERE (c.id = 'a' AND c.pk = 1) OR c.id IN ('b', @a)`,
	`SELECT * FROM c WHERE c.a NOT IN (1, 2) AND c.b NOT LIKE '%[^a-z]_!%' ESCAPE '!' OR c.c NOT BETWEEN 1 AND 2`,
	`SELECT * FROM c WHERE ARRAY_CONTAINS(c.l, {"k": 1}, true) AND NOT IS_DEFINED(c.x) -- end`,
	`SELECT VALUE ((1 + 2) * 3 - 4 / 5 % 6) & 7 | 8 ^ ~9 FROM c`,
	`SELECT VALUE CONCAT(LOWER(c.s), SUBSTRING(c.s, 1, 2), ToString(c)) || REPLACE('a', 'b', 'c') FROM c`,
	`SELECT c._rid, [{"item": c.x}] AS orderByItems, c AS payload FROM c WHERE ((c.x >= 'a\u0027') AND (true)) ORDER BY c.x ASC`,
	`SELECT VALUE SetUnion(c.l, [1, 'a']) FROM c WHERE FullTextContainsAll(c.s, "a", "b") AND REGEXMATCH(c.s, 'a+', 'i')`,
	`SELECT c.a, t, COUNT(1) AS n, AVG(c.b) FROM c JOIN t IN c.l JOIN (SELECT VALUE u FROM u IN t.m) AS u GROUP BY c.a, t`,
	`SELECT VALUE (SELECT VALUE MAX(t.k) FROM t IN c.l) + 1 FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.l WHERE t.k = @a)`,
	`SELECT DISTINCT VALUE ARRAY(SELECT DISTINCT t, c.id FROM t IN c.l) FROM c["x"] AS c`,
	`SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) AS d`,
	`SELECT * FROM x IN (SELECT VALUE c.l FROM c WHERE c.id = @a)`,
	`SELECT MIN(c.a) AS lo, MAX(c.a) AS hi, SUM(c.a), COUNTIF(c.a), MAKELIST(c.a), MAKESET(c.b) FROM c`,
	`SELECT "😀\ud83d\ude00", 0xFF, .5, 1. FROM größe g WHERE g.größe != "\\"`,
}

var documents = []string{
	sample,
	`{"id":"a","pk":1,"a":1,"b":"x","l":[{"k":1,"m":[null]}],"s":"Aab b","x":{"y":[1,2,{"z":"\ud83d\ude00"}]}}`,
	`{"id":"b","a":null,"b":[],"c":{},"s":"\u0000\"\\","x":-0.0,"_rid":"r"}`,
	`[]`, `null`, `"a"`, ` {"a" : {"a" : {"a" : 1e308 } } } `,
}

// FuzzParse checks that no text panics the parser, that errors are of the two documented types
// with a position inside the text, and that the print of a query parses to the same print.
func FuzzParse(f *testing.F) {
	fuzzseed.Add(f)
	for _, q := range queries {
		f.Add(q)
	}
	f.Add(strings.Repeat("(", 1000))
	f.Add("SELECT VALUE " + strings.Repeat("- (", maxDepth-2) + "1" + strings.Repeat(")", maxDepth-2) + " FROM c")
	f.Add("SELECT VALUE 1" + strings.Repeat(" + 1", maxDepth-2) + " FROM c")
	f.Fuzz(func(t *testing.T, text string) {
		for _, rule := range []func(string) (*Query, error){Parse, ParseCondition} {
			q, err := rule(text)
			if err != nil {
				checkParseError(t, text, err)
				continue
			}
			printed := q.String()
			again, err := rule(printed)
			if err != nil {
				t.Fatalf("%q prints as %q, which does not read back: %v", text, printed, err)
			}
			if second := again.String(); second != printed {
				t.Fatalf("%q prints as %q, then as %q", text, printed, second)
			}
		}
	})
}

func checkParseError(t *testing.T, text string, err error) {
	t.Helper()
	var syntax *SyntaxError
	var unsupported *UnsupportedError
	pos := 0
	switch {
	case errors.As(err, &syntax):
		pos = syntax.Pos
	case errors.As(err, &unsupported):
		pos = unsupported.Pos
	default:
		t.Fatalf("%q: error is a %T", text, err)
	}
	if pos < 0 || pos > len(text) {
		t.Fatalf("%q: error at %d", text, pos)
	}
}

// FuzzBind checks that no parameter panics, and that a query and its print, with the same
// parameter, name the same documents.
func FuzzBind(f *testing.F) {
	fuzzseed.Add(f)
	for _, q := range queries {
		f.Add(q, `"a"`)
	}
	f.Add(`SELECT TOP @a * FROM c WHERE c.id = @a`, `3`)
	f.Add(`SELECT * FROM c WHERE c.s LIKE @a`, `"a[b"`)
	f.Fuzz(func(t *testing.T, text, param string) {
		q, err := Parse(text)
		if err != nil {
			return
		}
		params := Params{"@a": []byte(param)}
		b, err := q.Bind(params)
		if err != nil {
			var bindErr *BindError
			var unsupported *UnsupportedError
			if !errors.As(err, &bindErr) && !errors.As(err, &unsupported) {
				t.Fatalf("error is a %T", err)
			}
			return
		}
		paths := []string{"/pk", "/x/y"}
		at := show(b.Lookups(paths))
		again, err := Parse(q.String())
		if err != nil {
			t.Fatal(err)
		}
		b2, err := again.Bind(params)
		if err != nil {
			t.Fatalf("%q binds, its print %q does not: %v", text, q, err)
		}
		if other := show(b2.Lookups(paths)); other != at {
			t.Fatalf("%q points at %q, its print at %q", text, at, other)
		}
		if info, err := b.Info(); err == nil && info.RewrittenQuery != "" {
			if _, err := Parse(strings.Replace(info.RewrittenQuery, FilterPlaceholder, "true", 1)); err != nil {
				t.Fatalf("%q is rewritten to %q: %v", text, info.RewrittenQuery, err)
			}
		}
	})
}

// FuzzEval runs any query over any JSON. It must not panic or change the document, rows must be
// JSON, a query and its print must agree, the order must be consistent, and Lookups must name
// every matching document.
func FuzzEval(f *testing.F) {
	fuzzseed.Add(f)
	for i, q := range queries {
		f.Add(q, `"a"`, documents[i%len(documents)], documents[0])
	}
	f.Fuzz(func(t *testing.T, text, param, doc, other string) {
		q, err := Parse(text)
		if err != nil || !json.Valid([]byte(doc)) || !json.Valid([]byte(other)) || hasDuplicates(doc) {
			return
		}
		params := Params{"@a": []byte(param)}
		b, err := q.Bind(params)
		if err != nil {
			return
		}
		raw := []byte(doc)
		match := b.Match(raw)
		row, ok := b.row1(raw)
		if ok && !json.Valid(row) {
			t.Fatalf("%q over %s makes %q", text, doc, row)
		}
		if string(raw) != doc {
			t.Fatalf("%q changed %q to %q", text, doc, raw)
		}
		again, err := Parse(q.String())
		if err != nil {
			t.Fatal(err)
		}
		b2, err := again.Bind(params)
		if err != nil {
			t.Fatal(err)
		}
		row2, ok2 := b2.row1(raw)
		if b2.Match(raw) != match || ok2 != ok || !bytes.Equal(row, row2) {
			t.Fatalf("%q: %v %q, its print %q: %v %q", text, match, row, q, b2.Match(raw), row2)
		}
		checkLookups(t, b, raw, match)
		checkOrder(t, b, raw, []byte(other))
	})
}

// row1 returns the row of one document, also for aggregates.
func (b *Bound) row1(doc []byte) ([]byte, bool) {
	rows := results(b, []string{string(doc)})
	return []byte("[" + strings.Join(rows, ",") + "]"), len(rows) > 0
}

func checkLookups(t *testing.T, b *Bound, doc []byte, match bool) {
	t.Helper()
	at, ok := b.Lookups([]string{"/pk"})
	if !ok || !match {
		return
	}
	root := jsonValue(trim(doc))
	id, pk := root.find(step{name: "id", index: -1}), root.find(step{name: "pk", index: -1})
	found := slices.ContainsFunc(at, func(l Lookup) bool {
		if l.PartitionKey != nil {
			v := l.PartitionKey[0]
			if v.kind != pk.kind || v.kind != Undefined && !equal(v, pk) {
				return false
			}
		}
		return l.ID == id.Text()
	})
	if !found && id.kind == String {
		t.Fatalf("%s matches %s, but Lookups names %s", b, doc, show(at, ok))
	}
}

func checkOrder(t *testing.T, b *Bound, doc, other []byte) {
	t.Helper()
	x, y := b.SortKey(doc), b.SortKey(other)
	if b.Compare(x, y) != -b.Compare(y, x) || b.Compare(x, x) != 0 {
		t.Fatalf("%s: no order between %s and %s", b, doc, other)
	}
	back, err := b.ParseSortKey(x.AppendJSON(nil))
	if err != nil || b.Compare(x, back) != 0 {
		t.Fatalf("%s: key %s does not survive: %v", b, x.AppendJSON(nil), err)
	}
}

// FuzzScan checks the walk over raw bytes against encoding/json: one walk finds every path of a
// document with the same value.
func FuzzScan(f *testing.F) {
	for _, d := range documents {
		f.Add(d)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var plain any
		if !utf8.ValidString(doc) || json.Unmarshal([]byte(doc), &plain) != nil || hasDuplicates(doc) {
			return
		}
		tree := newPathTree()
		var refs []pathNodeRef
		var wants []any
		var visit func(steps []step, v any)
		visit = func(steps []step, v any) {
			slot, rest := tree.add(steps)
			refs, wants = append(refs, pathNodeRef{slot, rest}), append(wants, v)
			steps = steps[:len(steps):len(steps)]
			switch v := v.(type) {
			case map[string]any:
				for name, x := range v {
					visit(append(steps, step{name: name, index: -1}), x)
				}
			case []any:
				for i, x := range v {
					visit(append(steps, step{index: int64(i)}), x)
				}
			}
		}
		visit(nil, plain)
		e := env{slots: make([]Value, tree.slots)}
		tree.extract([]byte(doc), e.slots)
		for i, ref := range refs {
			var got any
			if err := json.Unmarshal(ref.eval(&e).AppendJSON(nil), &got); err != nil || !reflect.DeepEqual(got, wants[i]) {
				t.Fatalf("%s: a path gives %v, want %v (%v)", doc, got, wants[i], err)
			}
		}
	})
}

// hasDuplicates reports whether an object has two members of one name, which the engine assumes
// to be impossible.
func hasDuplicates(doc string) bool {
	var plain any
	if json.Unmarshal([]byte(doc), &plain) != nil {
		return true
	}
	return countNames(jsonValue(trim([]byte(doc)))) != countAny(plain)
}

func countNames(v Value) int {
	n := 0
	switch v.kind {
	case Array:
		for x := range items(v.raw) {
			n += countNames(x)
		}
	case Object:
		for _, x := range members(v.raw) {
			n += 1 + countNames(x)
		}
	default:
	}
	return n
}

func countAny(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += countAny(x)
		}
	case map[string]any:
		for _, x := range v {
			n += 1 + countAny(x)
		}
	}
	return n
}
