package config

import (
	"reflect"
	"slices"
	"strings"
)

// Prefix begins the name of every variable of this service.
const Prefix = "FEEDBOX_"

// testPrefix is reserved for settings of tests; they may share the
// environment of a process under test.
const testPrefix = Prefix + "TEST_"

// Variable describes one environment variable.
type Variable struct {
	Name string // in full, for example FEEDBOX_COSMOS_ENDPOINT
	// Type is the form of the value: string, int, bool, duration, start,
	// list or one of the allowed words separated by "|".
	Type      string
	Default   string   // used when the variable is absent; "" for none
	Doc       string   // one line of explanation
	Secret    bool     // the value is masked wherever it is shown
	Processes []string // that read it: "api", "relay", "console"

	min, max, check string
	index           []int
}

// Variables lists every variable of every process, sorted by name.
func Variables() []Variable {
	byName := map[string]*Variable{}
	for _, process := range []struct {
		name string
		of   reflect.Type
	}{{"api", reflect.TypeFor[API]()}, {"relay", reflect.TypeFor[Relay]()}, {"console", reflect.TypeFor[Console]()}} {
		for _, v := range variablesOf(process.of) {
			known, ok := byName[v.Name]
			if !ok {
				known = &v
				byName[v.Name] = known
			}
			known.Processes = append(known.Processes, process.name)
		}
	}
	all := make([]Variable, 0, len(byName))
	for _, v := range byName {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// variablesOf walks the struct type of one process in field order.
func variablesOf(process reflect.Type) []Variable {
	var out []Variable
	var walk func(t reflect.Type, prefix string, index []int)
	walk = func(t reflect.Type, prefix string, index []int) {
		for i := range t.NumField() {
			field := t.Field(i)
			at := append(slices.Clone(index), i)
			tag, ok := field.Tag.Lookup("env")
			if !ok {
				if field.IsExported() && field.Type.Kind() == reflect.Struct { // a group
					walk(field.Type, prefix+field.Tag.Get("envPrefix"), at)
				}
				continue
			}
			name, _, _ := strings.Cut(tag, ",")
			out = append(out, Variable{
				Name: prefix + name, Type: typeName(field), Default: field.Tag.Get("envDefault"), Doc: field.Tag.Get("doc"),
				Secret: isSecret(field.Type),
				min:    field.Tag.Get("min"), max: field.Tag.Get("max"), check: field.Tag.Get("check"), index: at,
			})
		}
	}
	walk(process, Prefix, nil)
	return out
}

func typeName(field reflect.StructField) string {
	if words := field.Tag.Get("oneof"); words != "" {
		return words
	}
	switch {
	case field.Type == durationType:
		return "duration"
	case field.Type == reflect.TypeFor[Start]():
		return "start"
	case field.Type.Kind() == reflect.Slice:
		return "list"
	case isSecret(field.Type):
		return "string"
	default:
		return field.Type.Kind().String()
	}
}

func isSecret(t reflect.Type) bool {
	return t == reflect.TypeFor[Secret]() || t == reflect.TypeFor[APIKeys]() || t == reflect.TypeFor[TokenKeys]()
}
