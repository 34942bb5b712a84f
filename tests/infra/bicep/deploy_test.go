package bicep

import (
	"strings"
	"testing"
)

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
	if len(resources) != 4 || byID["/X/as/a-me"].Body["name"] != "a-me" || len(list) != 2 || list[0] != "/X/as/a-me" || byID["/Y/ds/d"].Scope != "/X/ps/p" {
		t.Errorf("%+v", resources)
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
