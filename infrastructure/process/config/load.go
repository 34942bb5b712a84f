package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

var durationType = reflect.TypeFor[time.Duration]()

// load fills the struct that target points to and checks each variable on its
// own. The caller adds the checks across variables.
func load(target any, environ []string) *report {
	given := given(environ)
	variables := variablesOf(reflect.TypeOf(target).Elem())
	report := &report{order: make(map[string]int, len(variables))}
	for i, v := range variables {
		report.order[v.Name] = i + 1
	}
	for _, v := range variables {
		if text := given[v.Name]; v.Type == "list" && text != "" {
			given[v.Name] = strings.Join(listOf(text), ",")
		}
	}
	fromFile := readFiles(report, variables, given)
	fresh := func() any { return reflect.New(reflect.TypeOf(target).Elem()).Interface() }
	err := env.ParseWithOptions(target, env.Options{Environment: given, Prefix: Prefix})
	value := reflect.ValueOf(target).Elem()
	for _, v := range variables {
		text, set := given[v.Name]
		if set && err != nil {
			if problem := parseProblem(fresh(), v, text); problem != "" {
				report.add(v.Name, problem, example(v))
				continue
			}
		}
		field := value.FieldByIndex(v.index)
		if set || v.Default != "" {
			checkRange(report, v, field)
			checkText(report, v, field)
		}
		report.settings.record(v, field, set)
		if fromFile[v.Name] {
			report.settings[len(report.settings)-1].Source = SourceFile
		}
	}
	report.addUnknown(given)
	return report
}

// listOf returns the entries of a list without the blanks around them.
func listOf(text string) []string {
	entries := strings.Split(text, ",")
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	return entries
}

// Lookup finds a variable in environ, a list of NAME=value; the last one of a name counts.
func Lookup(environ []string, name string) (value string, found bool) {
	for _, pair := range slices.Backward(environ) {
		if key, value, _ := strings.Cut(pair, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// serviceLink matches the variables that Kubernetes adds to the environment of each container
// for a service whose name begins with feedbox: FEEDBOX_API_SERVICE_HOST,
// FEEDBOX_API_SERVICE_PORT_HTTP, FEEDBOX_API_PORT=tcp://..., FEEDBOX_API_PORT_80_TCP_ADDR.
var serviceLink = regexp.MustCompile(`^FEEDBOX(_[A-Z0-9_]+)?_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)=|PORT=(tcp|udp|sctp)://|PORT_\d+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?=)`)

// given keeps the variables of this service that are not empty. Where a name
// occurs twice the last one counts, as in os/exec.
func given(environ []string) map[string]string {
	out := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case !strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, testPrefix) || serviceLink.MatchString(pair):
		case value == "":
			delete(out, name)
		default:
			out[name] = value
		}
	}
	return out
}

// parseProblem parses v alone, because the library's own error names the Go
// field and not the variable. It returns "" when the text is well formed.
func parseProblem(fresh any, v Variable, text string) string {
	err := env.ParseWithOptions(fresh, env.Options{Environment: map[string]string{v.Name: text}, Prefix: Prefix})
	var all env.AggregateError
	errors.As(err, &all)
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) {
			continue
		}
		var number *strconv.NumError
		if v.Secret { // the errors of our own types quote nothing
			return "cannot be read: " + parse.Err.Error()
		}
		if v.Type == "duration" || errors.As(parse.Err, &number) {
			return fmt.Sprintf("%q is not %s", text, article(v.Type))
		}
		return parse.Err.Error()
	}
	return ""
}

func article(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "float64":
		return "a number"
	default:
		return "a " + kind
	}
}

func example(v Variable) string {
	switch v.Type {
	case "duration":
		return "write a number with a unit, for example 500ms, 30s, 5m or 240h"
	case "int":
		return "write digits only, for example 100"
	case "bool":
		return "write true or false"
	default:
		return ""
	}
}

// checkRange compares durations and numbers with the tags min and max.
func checkRange(report *report, v Variable, field reflect.Value) {
	if v.min == "" && v.max == "" {
		return
	}
	limit := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		if field.Type() == durationType {
			var d time.Duration
			d, err = time.ParseDuration(text)
			n = float64(d)
		}
		if err != nil {
			panic("config: bad limit in a struct tag: " + text)
		}
		return n
	}
	var n float64
	if field.CanFloat() {
		n = field.Float()
	} else {
		n = float64(field.Int())
	}
	if !(n >= limit(v.min) && n <= limit(v.max)) { // so that NaN is out of range
		report.add(v.Name, fmt.Sprintf("%v is out of range", field.Interface()), fmt.Sprintf("allowed are %s to %s", v.min, v.max))
	}
}

// checkText applies the tags oneof and check.
func checkText(report *report, v Variable, field reflect.Value) {
	if strings.Contains(v.Type, "|") {
		if words := strings.Split(v.Type, "|"); !slices.Contains(words, field.String()) {
			report.add(v.Name, fmt.Sprintf("%q is not allowed", field.String()), "allowed are "+strings.Join(words, ", "))
		}
	}
	if check, ok := checks[v.check]; ok {
		if problem, hint := check(field.String()); problem != "" {
			report.add(v.Name, problem, hint)
		}
	}
}
