package bicep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	f, err := Parse("a.bicep", `targetScope = 'subscription' // where
@description('It\'s \${not}')
@secure()
param key string
param n int = 1 + 2 * 3
/* two
   lines */
var list = [ 'a', 'b'
  'c${n}d${key == 'x' ? 1 : -2}'
]
resource r 'A.B/c@2020-01-01' existing = if (n > 1 && !empty(list)) {
  name: r2!.x.y[0].z
  'odd key': { a: 1, b: [] }
}
module m 'm.bicep' = {
  params: { p: f(1,
    2) }
}
output o array = list
`)
	if err != nil {
		t.Fatal(err)
	}
	if f.Scope != "subscription" || len(f.Declarations) != 6 {
		t.Fatalf("%+v", f)
	}
	for name, want := range map[string]string{
		"n":    "(1 + (2 * 3))",
		"list": "['a', 'b', 'c${n}d${((key == 'x') ? 1 : (-2))}']",
		"r":    "{ 'name': r2.x.y[0].z, 'odd key': { 'a': 1, 'b': [] } }",
		"m":    "{ 'params': { 'p': f(1, 2) } }",
	} {
		if got := Print(f.Find(name).Value); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if r := f.Find("r"); !r.Existing || Print(r.Condition) != "((n > 1) && (!empty(list)))" || r.Target != "A.B/c@2020-01-01" || r.Pos.Line != 11 {
		t.Errorf("%+v", r)
	}
	if args, ok := f.Find("key").Decorator("description"); !ok || Print(args[0]) != `'It\'s \${not}'` {
		t.Error("the description is lost")
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"var a = 'x":                             "string without an end",
		"var a = '''x'''":                        "multi-line",
		"var a = [for x in y: x]":                `"for" is not of the dialect`,
		"var a = { ...b }":                       "expected a name",
		"var a = 1 2":                            "unexpected '2'",
		"param p resourceInput<'x'>":             `type "resourceInput"`,
		"import x from 'y'":                      `"import" begins no statement`,
		"module m 'br/public:x:1' = [":           "expected the body",
		"@description('x')":                      "decorators before nothing",
		"var a = 1\nvar a = 2":                   "declared twice",
		"var a = '\\q'":                          "unknown escape",
		"var a = " + strings.Repeat("(", 200):    "nested deeper",
		"resource r 'x${y}@1' = {}":              "without interpolation",
		"var a = 'x'('y')":                       "only a function can be called",
		"var a = /* b":                           "comment without an end",
		"var a = { b: 1 c: 2 }":                  `expected "}"`,
		"var a = [ 1 2 ]":                        `expected "]"`,
		"var a = f(1\n2)":                        `expected ")"`,
		"var a = b ? c":                          `expected ":"`,
		"resource r 'A/b@1' = {\n resource x\n}": `expected ":"`,
	} {
		if _, err := Parse("x.bicep", text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.bicep:") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzParse: Parse does not panic, and parsing the printed result gives the same result.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("../../../bicep/*/*.bicep")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("var a = '${'${b}'}'\nparam c int = -(1 - -2) % 3 ?? null")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse("a.bicep", text)
		if err != nil {
			return
		}
		for _, d := range first.Declarations {
			if d.Value == nil {
				continue
			}
			once := Print(d.Value)
			again, err := Parse("b.bicep", "var x = "+once)
			if err != nil {
				if strings.Contains(err.Error(), "nested deeper") {
					continue // the brackets of Print count as well
				}
				t.Fatalf("%s does not parse: %v", once, err)
			}
			if twice := Print(again.Declarations[0].Value); twice != once {
				t.Fatalf("%s became %s", once, twice)
			}
		}
	})
}
