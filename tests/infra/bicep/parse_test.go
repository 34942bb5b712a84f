package bicep

import (
	"fmt"
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
    2), q: [for x in list: { k: x }] }
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
		"m":    "{ 'params': { 'p': f(1, 2), 'q': [for x in list: { 'k': x }] } }",
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
		"var a = 'x":                                   "string without an end",
		"var a = '''x'''":                              "multi-line",
		"var a = b ? [for x in y: x] : []":             "a loop is the whole value",
		"var a = [ [for x in y: x] ]":                  "a loop is the whole value",
		"var a = [for (x, i) in y: x]":                 "expected a name",
		"var a = [for x of y: x]":                      "expected in",
		"var a = { ...b }":                             "expected a name",
		"var a = 1 2":                                  "unexpected '2'",
		"param p resourceInput<'x'>":                   `type "resourceInput"`,
		"import x from 'y'":                            `"import" begins no statement`,
		"module m 'x.bicep' = [":                       "expected for",
		"module m 'x.bicep' = [for n of y: {}]":        "expected in",
		"module m 'x.bicep' = [for n in y: {}":         `expected "]"`,
		"resource r 'x@1' = [for n in y: {}":           `expected "]"`,
		"resource r 'x@1' existing = [for n in y: {}]": "expected the body",
		"@description('x')":                            "decorators before nothing",
		"var a = 1\nvar a = 2":                         "declared twice",
		"var a = '\\q'":                                "unknown escape",
		"var a = " + strings.Repeat("(", 200):          "nested deeper",
		"resource r 'x${y}@1' = {}":                    "without interpolation",
		"var a = 'x'('y')":                             "only a function can be called",
		"var a = /* b":                                 "comment without an end",
		"var a = { b: 1 c: 2 }":                        `expected "}"`,
		"var a = [ 1 2 ]":                              `expected "]"`,
		"var a = f(1\n2)":                              `expected ")"`,
		"var a = b ? c":                                `expected ":"`,
		"resource r 'A/b@1' = {\n resource x\n}":       `expected ":"`,
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

var texts = map[string]string{
	"b/p.bicepparam": "using './main.bicep'\nparam n = 2\nparam who = readEnvironmentVariable('WHO', 'me')",
	"b/main.bicep": `param n int
param who string
resource a 'X/as@1' = {
  name: 'a-${who}'
  tags: union({ k: 'v' }, {})
}
module m 'm/m.bicep' = {
  name: 'm'
  params: { of: a.id, twice: n * 2 }
}
output seen string = m.outputs.seen`,
	"b/m/m.bicep": `param of string
param twice int
var big = twice > 3
resource p 'X/ps@1' = { name: 'p' }
resource c 'X/ps/cs@1' = {
  parent: p
  name: 'c'
  list: concat([ of ], big ? [ { n: twice } ] : [])
  each: [for one in [ 1, twice ]: { k: 'of ${one}' }]
}
resource d 'Y/ds@1' = {
  name: 'd'
  scope: p
}
resource e 'Y/es@1' = if (!big) { name: 'e' }
output seen string = p.properties.host`,
}

func parsed(t *testing.T, texts map[string]string) map[string]*File {
	t.Helper()
	files := map[string]*File{}
	for name, text := range texts {
		f, err := Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	return files
}

func TestDeploy(t *testing.T) {
	resources, err := Deploy(parsed(t, texts), "b/p.bicepparam", nil, Standins{"X/ps": map[string]any{"host": "h"}})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Resource{}
	for _, r := range resources {
		byID[r.ID] = r
	}
	c := byID["/X/ps/p/cs/c"]
	list, _ := c.Body["list"].([]any)
	each, _ := c.Body["each"].([]any)
	if len(resources) != 4 || fmt.Sprint(each) != "[map[k:of 1] map[k:of 4]]" || byID["/X/as/a-me"].Body["name"] != "a-me" || len(list) != 2 || list[0] != "/X/as/a-me" || byID["/Y/ds/d"].Scope != "/X/ps/p" {
		t.Errorf("%+v", resources)
	}
}

func TestModulesInALoop(t *testing.T) {
	files := map[string]string{
		"b/p.bicepparam": "using './main.bicep'\nparam n = int(readEnvironmentVariable('N'))",
		"b/main.bicep": `param n int
@batchSize(1)
module m 'm.bicep' = [for i in range(0, n): if (i != 1) {
  name: 'm-${i}'
  params: { name: i == 0 ? 'a' : 'a-${i}' }
}]
output seen string = join([ m[0].outputs.seen, m[n - 1].outputs.seen ], ',')`,
		"b/m.bicep": "param name string\nresource a 'X/as@1' = { name: name }\noutput seen string = a.id",
	}
	resources, err := Deploy(parsed(t, files), "b/p.bicepparam", map[string]string{"N": "3"}, nil)
	if err != nil || len(resources) != 2 || resources[0].ID != "/X/as/a" || resources[1].ID != "/X/as/a-2" {
		t.Errorf("%+v, %v", resources, err)
	}
	for n, want := range map[string]string{"x": "int(string...) is not evaluated", "0": "there is no item 0", "2": "there is no .outputs"} {
		if _, err := Deploy(parsed(t, files), "b/p.bicepparam", map[string]string{"N": n}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("N=%s: got %v, want %q", n, err, want)
		}
	}
}

func TestResourcesInALoop(t *testing.T) {
	files := map[string]string{
		"b/p.bicepparam": "using './main.bicep'\nparam names = split(readEnvironmentVariable('NAMES'), ',')",
		"b/main.bicep": `param names array
resource a 'X/as@1' = [for n in names: if (n != 'none') {
  name: n
  rest: '${length(names)} ${join(skip(names, 1), '-')}'
}]
resource c 'X/as/cs@1' = { parent: a[0], name: 'c' }
output first string = a[0].id`,
	}
	resources, err := Deploy(parsed(t, files), "b/p.bicepparam", map[string]string{"NAMES": "p,none,q"}, nil)
	if err != nil || len(resources) != 3 || resources[1].ID != "/X/as/q" || resources[1].Body["rest"] != "3 none-q" || resources[2].ID != "/X/as/p/cs/c" {
		t.Errorf("%+v, %v", resources, err)
	}
	if _, err := Deploy(parsed(t, files), "b/p.bicepparam", map[string]string{"NAMES": "p,q,p"}, nil); err == nil || !strings.Contains(err.Error(), "/X/as/p is defined twice") {
		t.Errorf("two resources of one name: %v", err)
	}
}

func TestDeployRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ file, old, new, want string }{
		"missing parameter":    {"b/main.bicep", "of: a.id, ", "", "parameter of of b/m/m.bicep is missing"},
		"unknown parameter":    {"b/main.bicep", "of: a.id", "off: a.id", "has no parameter off"},
		"wrong type":           {"b/main.bicep", "n * 2", "who", "is string, not int"},
		"unknown symbol":       {"b/main.bicep", "a.id", "b.id", "b is not declared"},
		"unknown output":       {"b/main.bicep", "outputs.seen", "outputs.scene", "there is no scene"},
		"cycle":                {"b/m/m.bicep", "var big = twice > 3", "var big = big", "depends on itself"},
		"no stand-in":          {"b/m/m.bicep", "properties.host", "properties.port", "there is no port"},
		"wrong parent":         {"b/m/m.bicep", "'X/ps/cs@1'", "'Z/ps/cs@1'", "cannot be a child"},
		"unknown function":     {"b/m/m.bicep", "concat(", "shuffle(", "shuffle"},
		"unset variable":       {"b/p.bicepparam", "'WHO', 'me'", "'WHO'", "WHO is not set"},
		"no such file":         {"b/main.bicep", "'m/m.bicep'", "'m/n.bicep'", "there is no file b/m/n.bicep"},
		"module not created":   {"b/main.bicep", "'m/m.bicep' = {", "'m/m.bicep' = if (n > 2) {", "m is used and not created"},
		"vague condition":      {"b/m/m.bicep", "resource d 'Y/ds@1' = {", "resource d 'Y/ds@1' = if (twice) {", "the condition of d is int64"},
		"loop over no list":    {"b/m/m.bicep", "in [ 1, twice ]", "in twice", "for one in int64"},
		"loop with a symbol":   {"b/m/m.bicep", "for one in", "for big in", "the name is taken"},
		"output of wrong type": {"b/main.bicep", "seen string", "seen int", "is string, not int"},
	} {
		t.Run(name, func(t *testing.T) {
			seeded := map[string]string{}
			for file, text := range texts {
				seeded[file] = text
			}
			seeded[tc.file] = strings.Replace(seeded[tc.file], tc.old, tc.new, 1)
			_, err := Deploy(parsed(t, seeded), "b/p.bicepparam", nil, Standins{"X/ps": map[string]any{"host": "h"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
