package infra

import (
	"slices"
	"strings"
	"time"

	"feedbox/infrastructure/process/config"
	"feedbox/tests/infra/bicep"
)

// others lists variables that libraries read instead of the service's configuration.
var others = []string{"AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// wired lists variables whose values are names of resources. They must be set although the
// service has defaults, so that each name is defined once.
var wired = map[string][]string{
	"api":   {"FEEDBOX_COSMOS_ENDPOINT", "FEEDBOX_COSMOS_DATABASE", "FEEDBOX_COSMOS_CONTAINER"},
	"relay": {"FEEDBOX_COSMOS_ENDPOINT", "FEEDBOX_COSMOS_DATABASE", "FEEDBOX_COSMOS_CONTAINER", "FEEDBOX_COSMOS_LEASES", "FEEDBOX_COSMOS_PARKED", "FEEDBOX_SERVICEBUS_NAMESPACE", "FEEDBOX_SERVICEBUS_TOPIC"},
}

func duration(variables []variable, name string) int64 {
	for _, v := range variables {
		if v.name == name {
			d, err := time.ParseDuration(v.value)
			if err != nil {
				return 0
			}
			return int64(d / time.Second)
		}
	}
	return 0
}

var settingsChecks = []check{
	{
		"the variables are those that the service reads", knownVariables,
		[]seed{
			{apiFile, "'FEEDBOX_EVENT_TTL'", "'FEEDBOX_EVENTS_TTL'"},
			{relayFile, "'FEEDBOX_LOG_FORMAT'", "'FEEDBOX_AUTH'"},
			{relayFile, "              { name: 'FEEDBOX_COSMOS_LEASES', value: containers[0].leases }\n", ""},
			{relayFile, "'AZURE_CLIENT_ID'", "'AZURE_CLIENTID'"},
			{relayFile, "'FEEDBOX_DRAIN_TIMEOUT'", "'FEEDBOX_EVENT_TTL'"},
		},
	},
	{
		"the service accepts its settings", acceptedSettings,
		[]seed{
			{apiFile, "'${eventTtlHours}h'", "'${eventTtlHours} hours'"},
			{busFile, "split(replace(namespace.properties.serviceBusEndpoint, 'https://', ''), ':')[0]", "namespace.properties.serviceBusEndpoint"},
			{apiFile, "value: 'entra'", "value: 'none'"},
			{apiFile, "{ name: 'FEEDBOX_AUTH_AUDIENCE', value: audience }\n", "\n"},
		},
	},
	{
		"settings that matter have the values that they have to", settingValues,
		[]seed{
			{apiFile, "'entra'", "'apikey'"},
			{apiFile, "':${apiPort}'", "'127.0.0.1:8080'"},
			{relayFile, "':${opsPort}'", "':9000'"},
			{relayFile, "'ManagedIdentityCredential'", "'dev'"},
			{relayFile, "'json'", "'text'"},
		},
	},
	{
		"names and the lifetime of events have one source", oneSource,
		[]seed{
			{"bicep/main.bicep", "eventTtlHours: eventTtlHours\n    drainSeconds: drainSeconds\n    graceSeconds: graceSeconds\n    maxReplicas", "eventTtlHours: 24\n    drainSeconds: drainSeconds\n    graceSeconds: graceSeconds\n    maxReplicas"},
			{relayFile, "value: containers[0].leases", "value: 'lease'"},
			{relayFile, "value: topicName", "value: 'events'"},
			{"bicep/main.bicep", "eventTtlHours int = 240", "eventTtlHours int = 2400"},
			{cosmosFile, "name: 'contacts'\n", "name: 'contact'\n"},
		},
	},
}

func knownVariables(w *world, report func(string, ...any)) {
	type reading struct{ process, name string }
	reads := map[reading]bool{}
	for _, v := range config.Variables() {
		for _, p := range v.Processes {
			reads[reading{p, v.Name}] = true
		}
	}
	apps(w, report, func(process string, r bicep.Resource) {
		seen := map[string]bool{}
		for _, v := range environment(r) {
			if !reads[reading{process, v.name}] && !slices.Contains(others, v.name) {
				report("the %s does not read %s", process, v.name)
			}
			if seen[v.name] {
				report("%s is given to the %s twice", v.name, process)
			}
			if (v.value == "") == (v.secret == "") {
				report("%s of the %s has to have a value or a secret", v.name, process)
			}
			seen[v.name] = true
		}
		for _, name := range append(slices.Clone(wired[process]), "AZURE_CLIENT_ID") {
			if !seen[name] {
				report("%s is not given to the %s", name, process)
			}
		}
	})
}

// load reads variables into the configuration of a process, as the process does.
func load(process string, variables []variable) error {
	var environ []string
	for _, v := range variables {
		if v.secret != "" {
			v.value = strings.Repeat("A", 43) + "="
		}
		environ = append(environ, v.name+"="+v.value)
	}
	var err error
	switch process {
	case "api":
		_, err = config.LoadAPI(environ)
	case "console":
		_, err = config.LoadConsole(environ)
	default:
		_, err = config.LoadRelay(environ)
	}
	return err
}

func acceptedSettings(w *world, report func(string, ...any)) {
	apps(w, report, func(process string, r bicep.Resource) {
		if err := load(process, environment(r)); err != nil {
			report("the %s does not start: %v", process, err)
		}
	})
}

func settingValues(w *world, report func(string, ...any)) {
	apps(w, report, func(process string, r bicep.Resource) {
		wanted := map[string]string{"FEEDBOX_OPS_LISTEN": ":8090", "FEEDBOX_LOG_FORMAT": "json", "AZURE_TOKEN_CREDENTIALS": "ManagedIdentityCredential"}
		if process == "api" {
			wanted["FEEDBOX_AUTH"], wanted["FEEDBOX_API_LISTEN"] = "entra", ":8080"
		}
		for _, v := range environment(r) {
			if value, ok := wanted[v.name]; ok {
				want(report, v.name+" of the "+process, v.value, value)
				delete(wanted, v.name)
			}
		}
		if len(wanted) > 0 {
			report("the %s lacks %v", process, wanted)
		}
	})
}

func oneSource(w *world, report func(string, ...any)) {
	for name, resources := range w.running() {
		names := map[string]string{}
		for _, r := range resources {
			switch r.Type {
			case account + "/sqlDatabases":
				names["FEEDBOX_COSMOS_DATABASE"] = text(r.Body["name"])
				want(report, "the id of the database", at(r.Body, "properties", "resource", "id"), r.Body["name"])
			case topic:
				names["FEEDBOX_SERVICEBUS_TOPIC"] = text(r.Body["name"])
			case container:
				variable := map[string]string{"data": "CONTAINER", "leases": "LEASES", "parked": "PARKED"}[r.Symbol]
				names["FEEDBOX_COSMOS_"+variable] = text(r.Body["name"])
			}
		}
		for _, v := range config.Variables() {
			if v.Name == "FEEDBOX_EVENT_TTL" {
				names[v.Name] = v.Default
			}
		}
		for _, r := range resources {
			for _, v := range environment(r) {
				if wanted, ok := names[v.name]; ok {
					want(report, name+": "+v.name+" of the "+process(r), v.value, wanted)
				}
			}
		}
	}
}
