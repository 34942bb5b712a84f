package infra

import (
	"strings"
	"time"

	"feedbox/infrastructure/wiring"
	"feedbox/tests/infra/bicep"
)

const (
	app       = "Microsoft.App/containerApps"
	apiFile   = "bicep/modules/api.bicep"
	relayFile = "bicep/modules/relay.bicep"
	envFile   = "bicep/modules/environment.bicep"
	// stopMargin is the time that a process needs after its drain; see infrastructure/wiring.
	stopMargin = int64(wiring.StopMargin / time.Second)
)

// variable is an environment variable of a container.
type variable struct{ name, value, secret string }

// environment returns the variables of a container app.
func environment(r bicep.Resource) []variable {
	var all []variable
	for _, e := range list(at(r.Body, "properties", "template", "containers", 0, "env")) {
		all = append(all, variable{text(at(e, "name")), text(at(e, "value")), text(at(e, "secretRef"))})
	}
	return all
}

// process returns api or relay, from the tag for azd.
func process(r bicep.Resource) string { return text(at(r.Body, "tags", "azd-service-name")) }

// apps calls visit for the two apps of each running deployment.
func apps(w *world, report func(string, ...any), visit func(process string, r bicep.Resource)) {
	seen := map[string]int{}
	w.each(app, report, func(r bicep.Resource) {
		seen[process(r)]++
		visit(process(r), r)
	})
	if seen["api"] != 2 || seen["relay"] != 2 || len(seen) != 2 {
		report("the apps in two deployments are %v", seen)
	}
}

func template(r bicep.Resource) any { return at(r.Body, "properties", "template") }

var appChecks = []check{
	{
		"the API is reached over HTTPS only", func(w *world, report func(string, ...any)) {
			apps(w, report, func(process string, r bicep.Resource) {
				ingress := at(r.Body, "properties", "configuration", "ingress")
				if process == "api" {
					want(report, "allowInsecure", at(ingress, "allowInsecure"), false)
					want(report, "external", at(ingress, "external"), true)
					want(report, "targetPort", at(ingress, "targetPort"), int64(8080))
					want(report, "affinity", at(ingress, "stickySessions", "affinity"), "none")
				}
			})
		},
		[]seed{{apiFile, "allowInsecure: false", "allowInsecure: true"}, {apiFile, "targetPort: apiPort", "targetPort: opsPort"}},
	},
	{
		"the relay has no ingress", func(w *world, report func(string, ...any)) {
			apps(w, report, func(process string, r bicep.Resource) {
				if process == "relay" {
					want(report, "ingress", at(r.Body, "properties", "configuration", "ingress"), nil)
				}
			})
		},
		[]seed{{relayFile, "      activeRevisionsMode: 'Single'\n", "      activeRevisionsMode: 'Single'\n      ingress: { external: false, targetPort: 8090 }\n"}},
	},
	{
		"two relays at least, no more than partitions", func(w *world, report func(string, ...any)) {
			apps(w, report, func(process string, r bicep.Resource) {
				least, most := number(at(template(r), "scale", "minReplicas")), number(at(template(r), "scale", "maxReplicas"))
				if process == "relay" && (least < 2 || most < least) {
					report("the relay has %d to %d replicas", least, most)
				}
			})
		},
		[]seed{{relayFile, "placeholder ? 0 : 2", "placeholder ? 0 : 1"}, {relayFile, "placeholder ? 0 : 2", "0"}},
	},
	{
		"prod has an API that survives the loss of a zone", func(w *world, report func(string, ...any)) {
			for _, r := range w.prod {
				if r.Type == app && process(r) == "api" && number(at(template(r), "scale", "minReplicas")) < 3 {
					report("the API of prod has fewer than three replicas")
				}
			}
		},
		[]seed{{apiFile, "(production ? 3 : 1)", "(production ? 1 : 1)"}},
	},
	{
		"the API scales by requests, the relay by CPU", scaling,
		[]seed{{apiFile, "'50'", "50"}, {relayFile, "type: 'cpu', metadata", "type: 'azure-servicebus', metadata"}},
	},
	{
		"the platform waits longer than a drain takes", grace,
		[]seed{
			{"bicep/main.bicep", "drainSeconds + 40", "drainSeconds + 5"},
			{relayFile, "      terminationGracePeriodSeconds: graceSeconds\n", ""},
			{apiFile, "'${drainSeconds}s'", "'10m'"},
		},
	},
	{
		"each container has one probe of each kind on the ops port", probes,
		[]seed{
			{apiFile, "port: opsPort }\n              periodSeconds: 10", "port: apiPort }\n              periodSeconds: 10"},
			{relayFile, "type: 'Readiness'", "type: 'Liveness'"},
			{relayFile, "httpGet: { path: '/livez', port: opsPort }\n              periodSeconds: 10", "httpGet: { path: '/readyz', port: opsPort }\n              periodSeconds: 10"},
			{relayFile, "failureThreshold: 10", "failureThreshold: 60"},
		},
	},
	{
		"each app has one identity of its own, and pulls with it", identities,
		[]seed{
			{"bicep/main.bicep", "identityId: relayIdentity.outputs.id", "identityId: apiIdentity.outputs.id"},
			{apiFile, "type: 'UserAssigned'", "type: 'SystemAssigned'"},
			{relayFile, "server: registryServer, identity: identityId", "server: registryServer, username: 'admin'"},
		},
	},
	{
		"images are never written down, only a placeholder", images,
		[]seed{{apiFile, ": current.outputs.image\n", ": 'feedbox:latest'\n"}, {"bicep/modules/image.bicep", "empty(image) ? running : image", "image"}},
	},
	{
		"the first deployment needs nothing of the placeholder", firstDeployment,
		[]seed{
			{apiFile, "ingress: placeholder ? null : {", "ingress: {"},
			{relayFile, "probes: placeholder ? [] : [", "probes: ["},
			{apiFile, "minReplicas: placeholder ? 0 : ", "minReplicas: "},
		},
	},
	{
		"apps talk to each other encrypted, logs need no key", func(w *world, report func(string, ...any)) {
			w.each("Microsoft.App/managedEnvironments", report, func(r bicep.Resource) {
				want(report, "encryption", at(r.Body, "properties", "peerTrafficConfiguration", "encryption", "enabled"), true)
				want(report, "the destination of logs", at(r.Body, "properties", "appLogsConfiguration", "destination"), "azure-monitor")
			})
		},
		[]seed{{envFile, "encryption: { enabled: true }", "encryption: { enabled: false }"}, {envFile, "'azure-monitor'", "'log-analytics'"}},
	},
}

func scaling(w *world, report func(string, ...any)) {
	apps(w, report, func(process string, r bicep.Resource) {
		rule := at(template(r), "scale", "rules", 0)
		if process == "api" {
			want(report, "concurrentRequests, a string", at(rule, "http", "metadata", "concurrentRequests"), "50")
			return
		}
		want(report, "the rule of the relay", at(rule, "custom", "type"), "cpu")
		want(report, "its value, a string", at(rule, "custom", "metadata", "value"), "70")
	})
}

func grace(w *world, report func(string, ...any)) {
	apps(w, report, func(process string, r bicep.Resource) {
		drain := duration(environment(r), "FEEDBOX_DRAIN_TIMEOUT")
		if waits := number(at(template(r), "terminationGracePeriodSeconds")); drain <= 0 || waits <= drain+stopMargin || waits > 600 {
			report("the platform waits %d s for the %s, whose drain takes %d s and %d s more", waits, process, drain, stopMargin)
		}
	})
}

func probes(w *world, report func(string, ...any)) {
	paths := map[string]string{"Startup": "/livez", "Liveness": "/livez", "Readiness": "/readyz"}
	apps(w, report, func(process string, r bicep.Resource) {
		port := int64(0)
		for _, e := range environment(r) {
			if e.name == "FEEDBOX_OPS_LISTEN" && e.value == ":8090" {
				port = 8090
			}
		}
		seen := map[string]bool{}
		for _, probe := range list(at(template(r), "containers", 0, "probes")) {
			kind := text(at(probe, "type"))
			if seen[kind] {
				report("the %s has two probes %s", process, kind)
			}
			seen[kind] = true
			want(report, kind+" of the "+process, at(probe, "httpGet", "path"), any(paths[kind]))
			want(report, "the port of "+kind+" of the "+process, at(probe, "httpGet", "port"), port)
			if n := number(at(probe, "failureThreshold")); n < 1 || n > 10 {
				report("failureThreshold of %s of the %s is %d; the platform takes 1 to 10", kind, process, n)
			}
		}
		if len(seen) != len(paths) {
			report("the %s has the probes %v", process, seen)
		}
	})
}

func identities(w *world, report func(string, ...any)) {
	for name, resources := range w.running() {
		owners := map[string]string{}
		for _, r := range resources {
			if r.Type != app {
				continue
			}
			want(report, "the kind of identity", at(r.Body, "identity", "type"), "UserAssigned")
			all, _ := at(r.Body, "identity", "userAssignedIdentities").(map[string]any)
			if len(all) != 1 {
				report("%s: the %s has %d identities", name, process(r), len(all))
			}
			for id := range all {
				if other, taken := owners[id]; taken {
					report("%s: %s and %s share an identity", name, other, process(r))
				}
				owners[id] = process(r)
				want(report, "the identity that pulls", at(r.Body, "properties", "configuration", "registries", 0, "identity"), any(id))
			}
		}
	}
}

func images(w *world, report func(string, ...any)) {
	for name, wanted := range map[string]string{"dev": "r.azurecr.io/feedbox@sha256:1", "prod": "r.azurecr.io/feedbox@sha256:0"} {
		for _, r := range w.running()[name] {
			if r.Type == app {
				want(report, "the image of the "+process(r)+" of "+name, at(template(r), "containers", 0, "image"), any(wanted))
				want(report, "its argument", at(template(r), "containers", 0, "args", 0), any(process(r)))
			}
		}
	}
}

func firstDeployment(w *world, report func(string, ...any)) {
	for _, r := range w.first {
		if r.Type != app {
			continue
		}
		want(report, "minReplicas of the placeholder", at(template(r), "scale", "minReplicas"), int64(0))
		want(report, "probes of the placeholder", len(list(at(template(r), "containers", 0, "probes"))), 0)
		want(report, "ingress of the placeholder", at(r.Body, "properties", "configuration", "ingress"), nil)
		if image := text(at(template(r), "containers", 0, "image")); !strings.HasPrefix(image, "mcr.microsoft.com/") {
			report("the placeholder is %q", image)
		}
	}
}
