package patch

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu/internal/document"
	"feedbox/tests/fuzzseed"
)

func TestApply(t *testing.T) {
	const doc = `{"id":"1", "n":1.50,"o":{"a":[1,2,3],"b":null},"s":"x"}`
	for _, c := range []struct{ patch, want string }{
		{`[{"op":"add","path":"/x","value":{"y":1}}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":null},"s":"x","x":{"y":1}}`},
		{`[{"op":"add","path":"/s","value":2}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":null},"s":2}`},
		{`[{"op":"add","path":"/o/a/1","value":9}]`, `{"id":"1","n":1.50,"o":{"a":[1,9,2,3],"b":null},"s":"x"}`},
		{`[{"op":"add","path":"/o/a/-","value":9},{"op":"add","path":"/o/a/4","value":8}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3,9,8],"b":null},"s":"x"}`},
		{`[{"op":"set","path":"/o/a/1","value":9}]`, `{"id":"1","n":1.50,"o":{"a":[1,9,3],"b":null},"s":"x"}`},
		{`[{"op":"set","path":"/o/c","value":9}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":null,"c":9},"s":"x"}`},
		{`[{"op":"replace","path":"/o/b","value":9}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":9},"s":"x"}`},
		{`[{"op":"remove","path":"/o"},{"op":"remove","path":"/s"}]`, `{"id":"1","n":1.50}`},
		{`[{"op":"remove","path":"/o/a/0"}]`, `{"id":"1","n":1.50,"o":{"a":[2,3],"b":null},"s":"x"}`},
		{`[{"op":"incr","path":"/n","value":1}]`, `{"id":"1","n":2.5,"o":{"a":[1,2,3],"b":null},"s":"x"}`},
		{`[{"op":"incr","path":"/o/a/2","value":-5},{"op":"incr","path":"/new","value":7}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,-2],"b":null},"s":"x","new":7}`},
		{`[{"op":"incr","path":"/n","value":1234565.5}]`, `{"id":"1","n":1234567,"o":{"a":[1,2,3],"b":null},"s":"x"}`},
		{`[{"op":"move","from":"/o/a","path":"/a"}]`, `{"id":"1","n":1.50,"o":{"b":null},"s":"x","a":[1,2,3]}`},
		{`[{"op":"add","path":"/a~1b~0c","value":1}]`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":null},"s":"x","a/b~c":1}`},
		{`{"condition":"from c","operations":[{"op":"Set","path":"/s","value":null}]}`, `{"id":"1","n":1.50,"o":{"a":[1,2,3],"b":null},"s":null}`},
	} {
		p, err := Parse([]byte(c.patch))
		if err != nil {
			t.Errorf("%s: %v", c.patch, err)
			continue
		}
		got, err := Apply([]byte(doc), p.Operations)
		if err != nil || string(got) != c.want {
			t.Errorf("%s gives\n%s (%v), want\n%s", c.patch, got, err, c.want)
		}
	}
}

func TestInvalidOperationsAreRefused(t *testing.T) {
	for patch, want := range map[string]string{
		`[{"op":"replace","path":"/x","value":1}]`:                          "does not exist",
		`[{"op":"remove","path":"/x"}]`:                                     "does not exist",
		`[{"op":"add","path":"/x/y","value":1}]`:                            "no path found beyond",
		`[{"op":"add","path":"/id/y","value":1}]`:                           "not an object or array",
		`[{"op":"set","path":"/a/3","value":1}]`:                            "outside",
		`[{"op":"replace","path":"/a/2","value":1}]`:                        "outside",
		`[{"op":"add","path":"/a/x","value":1}]`:                            "not an array index",
		`[{"op":"add","path":"/a/01","value":1}]`:                           "not an array index",
		`[{"op":"incr","path":"/id","value":1}]`:                            "not a number",
		`[{"op":"incr","path":"/a/0","value":"1"}]`:                         "not a number",
		`[{"op":"incr","path":"/new","value":"1"}]`:                         "not a number",
		`[{"op":"move","from":"/a","path":"/a/0"}]`:                         "into itself",
		`[{"op":"set","path":"/s","value":1},{"op":"remove","path":"/zz"}]`: "Operation(2)",
	} {
		p, err := Parse([]byte(patch))
		if err != nil {
			t.Errorf("%s: %v", patch, err)
			continue
		}
		_, err = Apply([]byte(`{"id":"x","a":[1,2],"s":0}`), p.Operations)
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", patch, err, want)
		}
	}
	for _, text := range []string{
		``, `{}`, `[]`, `{"operations":1}`, `[1]`, `[{"op":"add","path":"/x"}]`, `[{"op":"test","path":"/x","value":1}]`,
		`[{"op":"add","path":"x","value":1}]`, `[{"op":"add","value":1}]`, `[{"op":"move","path":"/x"}]`, `{"condition":1,"operations":[]}`,
		`[` + strings.Repeat(`{"op":"remove","path":"/x"},`, 10) + `{"op":"remove","path":"/x"}]`,
	} {
		if p, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was read as %+v", text, p)
		}
	}
}

func FuzzPatch(f *testing.F) {
	fuzzseed.Add(f)
	f.Add([]byte(`{"id":"1","o":{"a":[1,{}]},"n":-1e3}`), []byte(`[{"op":"add","path":"/o/a/-","value":[]}]`))
	f.Add([]byte(`{"id":"1","n":9223372036854775807}`), []byte(`{"operations":[{"op":"incr","path":"/n","value":1}]}`))
	f.Add([]byte(`{"id":"1","a":{"b":1}}`), []byte(`[{"op":"move","from":"/a/b","path":"/b"},{"op":"remove","path":"/a"}]`))
	f.Fuzz(func(t *testing.T, doc, text []byte) {
		d, err := document.Parse(doc, nil)
		if err != nil {
			return
		}
		p, err := Parse(text)
		if err != nil {
			return
		}
		out, err := Apply(append(d.AppendMembers(nil), '}'), p.Operations)
		if err == nil && !json.Valid(out) {
			t.Fatalf("%s on %s gave %s", text, doc, out)
		}
	})
}
