package config

import (
	"cmp"
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
	Processes []string // that read it: "api", "relay", "console", "push", "feed"

	min, max, check string
	index           []int
}

// Variables lists every variable of every process, sorted by name.
func Variables() []Variable {
	byName := map[string]*Variable{}
	for _, process := range []struct {
		name string
		of   reflect.Type
	}{{"api", reflect.TypeFor[API]()}, {"relay", reflect.TypeFor[Relay]()}, {"console", reflect.TypeFor[Console]()}, {"push", reflect.TypeFor[Push]()}, {"feed", reflect.TypeFor[Feed]()}} {
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

// OpenTelemetry lists the variables of OpenTelemetry that all processes but the console obey, sorted by name. The
// exporters read further ones, such as those of certificates and time limits.
func OpenTelemetry() []Variable {
	all := []Variable{
		{Name: "OTEL_BSP_SCHEDULE_DELAY", Default: "5000", Doc: "milliseconds between two exports of spans"},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Doc: "URL of the collector that receives metrics and traces over OTLP/HTTP, for example http://collector:4318; default none: nothing is exported"},
		{Name: "OTEL_EXPORTER_OTLP_HEADERS", Doc: "headers of the exports, as name=value, separated by commas", Secret: true},
		{Name: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", Doc: "URL for metrics alone; default OTEL_EXPORTER_OTLP_ENDPOINT"},
		{Name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Doc: "URL for traces alone; default OTEL_EXPORTER_OTLP_ENDPOINT"},
		{Name: "OTEL_METRICS_EXPORTER", Doc: "none: metrics are not exported; /metrics serves them in any case"},
		{Name: "OTEL_METRIC_EXPORT_INTERVAL", Default: "60000", Doc: "milliseconds between two exports of metrics"},
		{Name: "OTEL_RESOURCE_ATTRIBUTES", Doc: "attributes of all metrics and spans, as name=value, separated by commas"},
		{Name: "OTEL_SDK_DISABLED", Default: "false", Doc: "true: nothing is exported"},
		{Name: "OTEL_SERVICE_NAME", Doc: "name of the service; default feedbox-api, feedbox-relay, feedbox-push, feedbox-feed"},
		{Name: "OTEL_TRACES_EXPORTER", Doc: "none: traces are not exported"},
		{Name: "OTEL_TRACES_SAMPLER", Default: "parentbased_always_on", Doc: "which requests are traced; the relay and consumers follow the decision for the request if it is one of parentbased"},
		{Name: "OTEL_TRACES_SAMPLER_ARG", Doc: "argument of the sampler, for example 0.01 of parentbased_traceidratio"},
	}
	for i := range all {
		all[i].Type, all[i].Processes = "string", []string{"api", "relay", "push", "feed"}
	}
	return all
}

// OpenTelemetrySettings returns the values of OpenTelemetry's variables in environ.
func OpenTelemetrySettings(environ []string) []Setting {
	var all settings
	for _, v := range OpenTelemetry() {
		value, _ := Lookup(environ, v.Name)
		if strings.HasSuffix(v.Name, "_ENDPOINT") {
			value = Address(value).String()
		}
		set := value != ""
		if set && v.Secret {
			value = masked
		}
		all.record(v, reflect.ValueOf(cmp.Or(value, v.Default)), set)
	}
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
