package query

import (
	"testing"
)

func TestPathTree(t *testing.T) {
	const doc = ` { "skip" : {"a":"}\\\"{", "l":[[1,{"x":"]"}],"\\"]} ,"a":{"b" : [1 , 2] ,"c":{"d":-1.5e3}},"k\u0061":"esc","n":null,"t":true , "e":"" } `
	for _, tt := range []struct{ path, want string }{
		{`c.skip.a`, `"}\\\"{"`},
		{`c.a`, `{"b" : [1 , 2] ,"c":{"d":-1.5e3}}`},
		{`c.a.b`, `[1 , 2]`},
		{`c.a.b[1]`, `2`},
		{`c.a.c.d`, `-1.5e3`},
		{`c.a.c.d.e`, ``},
		{`c.ka`, `"esc"`},
		{`c.n`, `null`},
		{`c.t`, `true`},
		{`c.e`, `""`},
		{`c.skip.l[0][1].x`, `"]"`},
		{`c.skip.l[1]`, `"\\"`},
		{`c.nope`, ``},
	} {
		if got := run(t, "SELECT VALUE "+tt.path+" FROM c", doc, nil); got != tt.want {
			t.Errorf("%s = %s, want %s", tt.path, got, tt.want)
		}
		// Together with its parents, in one walk.
		if got := run(t, "SELECT VALUE [c.a.c, "+tt.path+", c.a][1] FROM c WHERE IS_DEFINED(c.a) AND IS_DEFINED(c)", doc, nil); tt.want != "" && got != tt.want {
			t.Errorf("%s = %s in company, want %s", tt.path, got, tt.want)
		}
	}
}

// TestWalkStopsEarly checks that the text after the last needed path is not read, and that a
// match allocates nothing.
func TestWalkStopsEarly(t *testing.T) {
	doc := []byte(`{"id":"1","a":{"b":2,"c":3},"z":1}`)
	for path, stops := range map[string]bool{"id": true, "z": true, "nope": false} {
		tree := newPathTree()
		tree.add([]step{{name: "a", index: -1}, {name: "b", index: -1}})
		tree.add([]step{{name: path, index: -1}})
		w := walk{doc: doc, slots: make([]Value, 2), left: 2}
		if end := w.object(0, &tree.root); (end < 0) != stops {
			t.Errorf("with %s the walk ends at %d", path, end)
		}
	}
	b := bind(t, `SELECT * FROM c WHERE c.id = '1' AND c.a.b = 2`, nil)
	if n := testing.AllocsPerRun(100, func() { b.Match(doc) }); n != 0 || !b.Match(doc) {
		t.Errorf("%v allocations per match", n)
	}
}

func TestBrokenDocuments(t *testing.T) {
	b := bind(t, `SELECT c.a, c.a.b, c.l[1], c FROM c WHERE c.a = 1 OR c.a.b LIKE '%' OR c.s = "x\ny" OR ARRAY_CONTAINS(c.l, {"q": 1}, true) ORDER BY c.o, c.l`, nil)
	const whole = `{"a":{"b":"\u00e9\\"},"l":[1,{"q":1}],"s":"x\ny","o":{"z":[true,null]}}`
	for i := range len(whole) {
		for _, doc := range []string{whole[:i], whole[i:], whole[:i] + `"` + whole[i:], whole[:i] + "}" + whole[i:], whole[:i] + `\` + whole[i:]} {
			b.Match([]byte(doc))
			b.Project(nil, []byte(doc))
			b.SortKey([]byte(doc))
			DistinctKey(nil, []byte(doc))
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-1": -1, "999999999999999": 999999999999999, "1234567890123456789": 1234567890123456789,
		"1.5": 1.5, "-2e3": -2000, "": 0, "-": 0, "x": 0,
	} {
		if got := parseNumber([]byte(text)); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestValueAccess(t *testing.T) {
	key := bind(t, `SELECT * FROM c WHERE c.a = 'x\u0041' AND c.b = -1.50 AND c.c = true AND c.d = null`, nil).
		PartitionKey([]string{"/a", "/b", "/c", "/d", "/e"})
	if len(key) != 4 || key[0].Text() != "xA" || key[1].Float() != -1.5 || !key[2].Bool() || key[3].Kind() != Null {
		t.Errorf("%v", key)
	}
	if key[1].Text() != "" || key[0].Float() != 0 || key[0].Bool() {
		t.Error("a value has another type as well")
	}
}
