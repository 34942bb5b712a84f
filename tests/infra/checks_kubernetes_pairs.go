package infra

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"feedbox/infrastructure/process/config"
)

// pairs lists the folders for other stores and brokers, named FEEDBOX_STORE-FEEDBOX_BROKER.
var pairs = []string{"postgres-rabbitmq", "postgres-sqs", "cosmos-rabbitmq", "firestore-rabbitmq"}

var kubernetesPairChecks = []check{
	{
		"Kubernetes: a pair of store and broker has the manifests of the base", pairManifests,
		[]seed{
			{kubernetes + "postgres-rabbitmq/kustomization.yaml", "  - ../base\n", "  - ../base/api.yaml\n"},
			{kubernetes + "postgres-sqs/kustomization.yaml", "behavior: replace", "behavior: merge"},
			{kubernetes + "cosmos-rabbitmq/kustomization.yaml", "patches:\n", "replicas: [{name: feedbox-relay, count: 0}]\npatches:\n"},
			{kubernetes + "postgres-rabbitmq/kustomization.yaml", "path: access.yaml", "path: secrets.yaml"},
			{kubernetes + "cosmos-rabbitmq/access.yaml", "          env:\n", "          livenessProbe: null\n          env:\n"},
			{kubernetes + "postgres-sqs/access.yaml", "name: feedbox-api", "name: feedbox-web"},
			{kubernetes + "firestore-rabbitmq/access.yaml", "  annotations:", "  labels:"},
			{kedaFolder + "kustomization.yaml", "  - ../base\n", "  - ..\n"},
			{kubernetes + "other/feedbox.env", "", "FEEDBOX_STORE=other\n"},
		},
	},
	{
		"Kubernetes: a pair's settings are accepted, and its secrets are references", pairSettings,
		[]seed{
			{kubernetes + "postgres-rabbitmq/feedbox.env", "FEEDBOX_STORE=postgres\n", ""},
			{kubernetes + "postgres-rabbitmq/feedbox.env", "FEEDBOX_RABBITMQ_EXCHANGE=contacts", "FEEDBOX_POSTGRES_URL=postgres://u:p@h/d"},
			{kubernetes + "postgres-sqs/feedbox.env", "FEEDBOX_SQS_QUEUE_URL", "FEEDBOX_SQS_QUEUE"},
			{kubernetes + "postgres-sqs/feedbox.env", "FEEDBOX_EVENT_TTL=240h", "FEEDBOX_EVENT_TTL=24h"},
			{kubernetes + "cosmos-rabbitmq/feedbox.env", "FEEDBOX_BROKER=rabbitmq", "FEEDBOX_BROKER=sqs"},
			{kubernetes + "cosmos-rabbitmq/access.yaml", "FEEDBOX_RABBITMQ_URL", "FEEDBOX_POSTGRES_URL"},
			{kubernetes + "firestore-rabbitmq/feedbox.env", "FEEDBOX_FIRESTORE_PROJECT=PROJECT\n", ""},
			{kubernetes + "postgres-rabbitmq/access.yaml", "valueFrom:\n                secretKeyRef: {name: feedbox-rabbitmq, key: url}", "value: amqp://u:p@h/"},
			{kubernetes + "README.md", "secret generic feedbox-rabbitmq", "secret generic rabbitmq"},
			{kubernetes + "postgres-sqs/access.yaml", "feedbox-postgres-api", "feedbox-postgres-relay"},
			{kubernetes + "firestore-rabbitmq/access.yaml", "roles/feedboxApi", "roles/datastore.user"},
		},
	},
}

// only reports the members of an object that are not allowed.
func only(report func(string, ...any), what string, v any, allowed ...string) {
	for _, name := range keys(v) {
		if !slices.Contains(allowed, name) {
			report("%s has %s; it may have %s", what, name, strings.Join(allowed, ", "))
		}
	}
}

// pairManifests requires that a pair is base plus one file of settings and one of access,
// which add secrets to containers and identities to accounts. So the checks of base hold
// for the pair too.
func pairManifests(w *world, report func(string, ...any)) {
	for file := range w.texts {
		folder := strings.TrimPrefix(path.Dir(file), strings.TrimSuffix(kubernetes, "/"))
		if strings.HasPrefix(file, kubernetes) && path.Base(file) == "feedbox.env" && folder != "/base" && !slices.Contains(pairs, folder[1:]) {
			report("%s is in a folder that no check knows", file)
		}
	}
	// kustomize would report a cycle if a folder contained the folder that refers to it.
	want(report, "what is scaled with KEDA", at(read(w, kedaFolder+"kustomization.yaml", report), "resources", 0), "../base")
	for _, pair := range pairs {
		folder := kubernetes + pair + "/"
		k := read(w, folder+"kustomization.yaml", report)
		only(report, folder+"kustomization.yaml", k, "apiVersion", "kind", "namespace", "resources", "configMapGenerator", "patches")
		want(report, pair+": its resources", fmt.Sprint(at(k, "resources")), "[../base]")
		want(report, pair+": its settings", fmt.Sprint(at(k, "configMapGenerator")), "[map[behavior:replace envs:[feedbox.env] name:feedbox]]")
		want(report, pair+": its patches", fmt.Sprint(at(k, "patches")), "[map[path:access.yaml]]")
		for _, d := range documents(w, folder+"access.yaml", report) {
			what := folder + "access.yaml: " + text(at(d, "metadata", "name"))
			if at(d, "kind") == "ServiceAccount" {
				only(report, what, d, "apiVersion", "kind", "metadata")
				only(report, what, at(d, "metadata"), "name", "annotations")
				continue
			}
			process := strings.TrimPrefix(text(at(d, "metadata", "name")), "feedbox-")
			if at(d, "kind") == "NetworkPolicy" { // egressPorts compares its rules
				only(report, what, d, "apiVersion", "kind", "metadata", "spec")
				only(report, what, at(d, "spec"), "egress")
				continue
			}
			if at(d, "kind") != "Deployment" || !slices.Contains([]string{"api", "relay"}, process) {
				report("%s is neither a deployment nor a service account of ours", what)
			}
			only(report, what, d, "apiVersion", "kind", "metadata", "spec")
			only(report, what, at(d, "metadata"), "name")
			only(report, what, at(d, "spec"), "template")
			only(report, what, at(d, "spec", "template"), "spec")
			only(report, what, at(d, "spec", "template", "spec"), "containers")
			want(report, what+": containers", len(list(at(d, "spec", "template", "spec", "containers"))), 1)
			only(report, what, at(d, "spec", "template", "spec", "containers", 0), "name", "env")
			want(report, what+": its container", at(d, "spec", "template", "spec", "containers", 0, "name"), any(process))
		}
	}
}

// secretsOf returns the variables that a process of a pair reads from secrets.
func secretsOf(w *world, pair, process string, report func(string, ...any)) (secrets []variable) {
	for _, d := range documents(w, kubernetes+pair+"/access.yaml", report) {
		if at(d, "metadata", "name") != any("feedbox-"+process) {
			continue
		}
		for _, e := range list(at(d, "spec", "template", "spec", "containers", 0, "env")) {
			secret, name := text(at(e, "valueFrom", "secretKeyRef", "name")), text(at(e, "name"))
			if secret == "" || text(at(e, "valueFrom", "secretKeyRef", "key")) == "" {
				report("%s: %s of the %s is no reference to a secret", pair, name, process)
			}
			if !strings.Contains(w.texts[kubernetes+"README.md"], "create secret generic "+secret+" ") {
				report("%s: README.md does not make the secret %s", pair, secret)
			}
			secrets = append(secrets, variable{name: name, value: standinURLs[name]})
		}
	}
	return secrets
}

// standinURLs has possible values of secrets.
var standinURLs = map[string]string{
	"FEEDBOX_POSTGRES_URL": "postgres://u:p@h:5432/contacts?sslmode=verify-full", "FEEDBOX_RABBITMQ_URL": "amqps://u:p@h/v",
}

func pairSettings(w *world, report func(string, ...any)) {
	known := map[string]bool{}
	for _, v := range config.Variables() {
		known[v.Name] = !v.Secret
	}
	base := map[string]string{}
	for _, v := range settings(w, envSettings) {
		base[v.name] = v.value
	}
	for _, pair := range pairs {
		file := kubernetes + pair + "/feedbox.env"
		given := map[string]string{}
		for _, v := range settings(w, file) {
			if given[v.name] = v.value; !known[v.name] && !slices.Contains(others, v.name) {
				report("%s has %s, which is not a setting or a secret", file, v.name)
			}
		}
		want(report, file+": store and broker", given["FEEDBOX_STORE"]+"-"+given["FEEDBOX_BROKER"], pair)
		for _, name := range slices.Sorted(maps.Keys(base)) {
			azure := strings.HasPrefix(name, "FEEDBOX_COSMOS_") || strings.HasPrefix(name, "FEEDBOX_SERVICEBUS_") || strings.HasPrefix(name, "AZURE_")
			if value, is := given[name]; !is && !azure || is && value != base[name] {
				report("%s: %s is %q, in the base %q", file, name, value, base[name])
			}
		}
		if strings.Contains(w.texts[kubernetes+pair+"/access.yaml"], "roles/datastore.user") {
			report("%s: roles/datastore.user allows more than the processes need", pair)
		}
		if access := w.texts[kubernetes+pair+"/access.yaml"]; given["FEEDBOX_STORE"] == config.StorePostgres && (!strings.Contains(access, "name: feedbox-postgres-api,") || !strings.Contains(access, "name: feedbox-postgres-relay,")) {
			report("%s: API and relay do not have a secret of their own for PostgreSQL", pair)
		}
		for _, process := range []string{"api", "relay"} {
			all := append(settings(w, file), secretsOf(w, pair, process, report)...)
			all = append(all, variable{name: "FEEDBOX_API_TOKEN_KEYS", secret: "of the base"})
			if err := load(process, all); err != nil {
				report("%s: the %s does not start: %v", pair, process, err)
			}
		}
	}
}
