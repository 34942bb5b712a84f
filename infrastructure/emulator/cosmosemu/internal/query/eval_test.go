package query

import (
	"testing"
)

// run evaluates SELECT VALUE over one document and returns the JSON of the value, "" for
// undefined.
func run(t *testing.T, text, doc string, params Params) string {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	b, err := q.Bind(params)
	if err != nil {
		t.Fatalf("bind %s: %v", text, err)
	}
	if !b.Match([]byte(doc)) {
		return ""
	}
	row, _ := b.Project(nil, []byte(doc))
	return string(row)
}

const sample = `{"id":"a1","pk":"p","n":5,"f":1.0,"big":9007199254740993,"neg":-2.5,"z":null,"yes":true,"no":false,
	"s":"Hello World","esc":"tab\tq\"u\u00e9\ud83d\ude00","empty":"","arr":[1,"two",{"k":1,"m":2},[3],null],"obj":{"a":{"b":"deep"},"c d":7},
	"tags":["x","y"],"\u006beyed":"k","title":"A full-text Search, here"}`

func TestExpressions(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		// Literals keep their spelling if JSON allows it.
		{`1`, `1`},
		{`1.0`, `1.0`},
		{`.5`, `0.5`},
		{`1.`, `1`},
		{`007`, `7`},
		{`1e3`, `1e3`},
		{`0xFf`, `255`},
		{`-1`, `-1`},
		{`"a\u0041\n"`, `"aA\n"`},
		{`'it\'s "q"'`, `"it's \"q\""`},
		{`"😀\ud83d\ude00"`, `"😀😀"`},
		{`true`, `true`},
		{`null`, `null`},
		{`undefined`, ``},
		{`[1, 'a', undefined, c.pk]`, `[1,"a","p"]`},
		{`{"a": c.n, 'b': {"c": [c.nope, c.n]}, "d": undefined}`, `{"a":5,"b":{"c":[5]}}`},
		{`{}`, `{}`},
		{`[]`, `[]`},

		// Paths.
		{`c.id`, `"a1"`},
		{`c["id"]`, `"a1"`},
		{`c['obj']["a"].b`, `"deep"`},
		{`c.obj["c d"]`, `7`},
		{`c.obj.a`, `{"b":"deep"}`},
		{`c.arr[1]`, `"two"`},
		{`c.arr[2].k`, `1`},
		{`c.arr[3][0]`, `3`},
		{`c.arr[9]`, ``},
		{`c.arr[-1]`, ``},
		{`c.arr[0.5]`, ``},
		{`c.arr["0"]`, ``},
		{`c.obj[0]`, ``},
		{`c.keyed`, `"k"`},
		{`c.nope.deeper`, ``},
		{`c.s.length`, ``},
		{`{"x": {"y": 3}}.x.y`, `3`},
		{`[7, 8][1]`, `8`},
		{`c.big`, `9007199254740993`},
		{`c.f`, `1.0`},
		{`c.esc`, `"tab\tq\"u\u00e9\ud83d\ude00"`},

		// Arithmetic uses 64-bit floats and is undefined for other types.
		{`c.n + 1`, `6`},
		{`1 + 2 * 3`, `7`},
		{`(1 + 2) * 3`, `9`},
		{`10 - 3 - 2`, `5`},
		{`7 / 2`, `3.5`},
		{`-7 % 3`, `-1`},
		{`7.5 % 2`, `1.5`},
		{`1 / 0`, ``},
		{`0 / 0`, ``},
		{`c.s + 1`, ``},
		{`c.nope + 1`, ``},
		{`null + 1`, ``},
		{`true + 1`, ``},
		{`1 + 1 < 3 * 1`, `true`},
		{`true = 1 < 2`, `true`},
		{`2 = 2 = true`, `true`},
		{`1 | 6 & 3`, `3`},
		{`1 ^ 3 | 4`, `6`},
		{`'a' || 'b' LIKE 'ab'`, `true`},
		{`-c.n`, `-5`},
		{`+c.n`, `5`},
		{`+c.f`, `1.0`},
		{`-c.s`, ``},
		{`5 & 3`, `1`},
		{`5 | 3`, `7`},
		{`5 ^ 3`, `6`},
		{`~5`, `-6`},
		{`5 << 2`, `20`},
		{`1 << 33`, `2`},
		{`-8 >> 1`, `-4`},
		{`-8 >>> 28`, `15`},
		{`-1 >>> 0`, `4294967295`},
		{`1 + 1 << 2`, `8`},
		{`1 << 2 & 5`, `4`},
		{`16 >> 1 < 9`, `true`},
		{`'a' << 1`, ``},
		{`{name: c.s, "n": c.n}`, `{"name":"Hello World","n":5}`},
		{`2147483648 | 0`, `-2147483648`},
		{`6442450944 | 0`, `-2147483648`},
		{`1e21 * 10`, `1e+22`},
		{`0.1 + 0.2`, `0.30000000000000004`},
		{`1e-7 * 1`, `1e-7`},
		{`'a' || 'b' || c.pk`, `"abp"`},
		{`'a' || 1`, ``},
		{`c.esc || '"'`, `"tab\tq\"ué😀\""`},

		// Equality is true or false across types, undefined only with undefined.
		{`c.n = 5`, `true`},
		{`5 = c.n`, `true`},
		{`c.n = 5.0`, `true`},
		{`c.n = '5'`, `false`},
		{`c.n != '5'`, `true`},
		{`c.n <> 6`, `true`},
		{`c.z = null`, `true`},
		{`c.z != null`, `false`},
		{`c.n != null`, `true`},
		{`c.nope = null`, ``},
		{`c.nope != 1`, ``},
		{`undefined = undefined`, ``},
		{`c.arr[3] = [3.0]`, `true`},
		{`c.arr[2] = {"m": 2, "k": 1}`, `true`},
		{`c.arr[2] != {"k": 1}`, `true`},
		{`c.esc = "tab\tq\"ué😀"`, `true`},
		{`"k" = c["keyed"]`, `true`},
		{`c.big = 9007199254740992`, `true`}, // the same 64-bit float

		// Order needs the same simple type.
		{`c.n < 6`, `true`},
		{`c.n >= 5`, `true`},
		{`c.n > 'a'`, ``},
		{`c.s < 'I'`, `true`},
		{`c.no < c.yes`, `true`},
		{`null <= c.z`, `true`},
		{`null < c.z`, `false`},
		{`[1] < [2]`, ``},
		{`{} < {}`, ``},
		{`c.nope < 1`, ``},
		{`c.neg < -2`, `true`},

		// Three-valued logic.
		{`true AND undefined`, ``},
		{`false AND undefined`, `false`},
		{`undefined AND false`, `false`},
		{`true OR undefined`, `true`},
		{`undefined OR true`, `true`},
		{`false OR undefined`, ``},
		{`NOT undefined`, ``},
		{`NOT true`, `false`},
		{`NOT c.n`, ``},
		{`1 AND true`, ``},
		{`1 OR true`, `true`},
		{`c.n = 5 AND c.pk = 'p' OR false`, `true`},
		{`false AND false OR true`, `true`},
		{`true OR true AND false`, `true`},
		{`not (c.n = 5) or c.pk = 'p'`, `true`},

		// ?: and ??.
		{`c.n = 5 ? 'y' : 'n'`, `"y"`},
		{`c.nope = 5 ? 'y' : 'n'`, `"n"`},
		{`1 ? 'y' : 'n'`, `"n"`},
		{`false ? 1 : true ? 2 : 3`, `2`},
		{`c.nope ?? c.z ?? 1`, `null`},
		{`c.nope ?? 1`, `1`},
		{`(c.nope ?? 2) = 2 ? 'a' : 'b'`, `"a"`},

		// IN, BETWEEN.
		{`c.n IN (1, 5)`, `true`},
		{`c.n NOT IN (1, 5)`, `false`},
		{`c.n in ('5', 6)`, `false`},
		{`c.nope IN (1)`, ``},
		{`c.nope NOT IN (1)`, ``},
		{`c.pk IN ('q', 'p')`, `true`},
		{`c.z IN (null)`, `true`},
		{`c.n IN (c.nope, c.n)`, `true`},
		{`c.n IN (undefined)`, `false`},
		{`c.arr[3] IN ([3], 1)`, `true`},
		{`c.n BETWEEN 5 AND 6`, `true`},
		{`c.n NOT BETWEEN 5 AND 6`, `false`},
		{`c.n BETWEEN 1 AND 4 OR c.n = 5`, `true`},
		{`c.n BETWEEN 'a' AND 'z'`, ``},
		{`c.pk BETWEEN 'a' AND 'z' AND c.n = 5`, `true`},

		// LIKE.
		{`c.s LIKE 'Hello%'`, `true`},
		{`c.s LIKE '%lo W%'`, `true`},
		{`c.s LIKE 'hello%'`, `false`},
		{`c.s LIKE 'H_llo World'`, `true`},
		{`c.s LIKE 'H[a-f]llo%'`, `true`},
		{`c.s LIKE 'H[^a-f]llo%'`, `false`},
		{`c.s LIKE '%d'`, `true`},
		{`c.s LIKE ''`, `false`},
		{`'' LIKE ''`, `true`},
		{`'' LIKE '%'`, `true`},
		{`'50%' LIKE '50!%' ESCAPE '!'`, `true`},
		{`'50x' LIKE '50!%' ESCAPE '!'`, `false`},
		{`'a]b' LIKE 'a[]]b'`, `true`},
		{`'a-b' LIKE 'a[-]b'`, `true`},
		{`'😀x' LIKE '_x'`, `true`},
		{`c.n LIKE '5'`, ``},
		{`c.nope LIKE '%'`, ``},
		{`c.s NOT LIKE 'x%'`, `true`},
		{`c.s LIKE 'H%' || 'd'`, `true`},
		{`'aaab' LIKE '%a%a%b'`, `true`},
		{`'éb' LIKE '%[^é]b'`, `false`},
		{`'abc' LIKE c.nope`, ``},
		{`'abc' LIKE c.obj.a.b || '%'`, `false`},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			if got := run(t, "SELECT VALUE "+tt.expr+" FROM c", sample, nil); got != tt.want {
				t.Errorf("%s = %s, want %s", tt.expr, got, tt.want)
			}
		})
	}
}
