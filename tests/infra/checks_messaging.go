package infra

import (
	"time"

	"feedbox/tests/infra/bicep"
)

const (
	busFile      = "bicep/modules/servicebus.bicep"
	namespace    = "Microsoft.ServiceBus/namespaces"
	topic        = namespace + "/topics"
	subscription = topic + "/subscriptions"
)

func setting(kind, name string, wanted any) func(*world, func(string, ...any)) {
	return func(w *world, report func(string, ...any)) {
		w.each(kind, report, func(r bicep.Resource) { want(report, name, at(r.Body, "properties", name), wanted) })
	}
}

var messagingChecks = []check{
	{
		"Service Bus accepts no keys", setting(namespace, "disableLocalAuth", true),
		[]seed{{busFile, "disableLocalAuth: true", "disableLocalAuth: false"}},
	},
	{
		"Service Bus speaks TLS 1.2 at least", setting(namespace, "minimumTlsVersion", "1.2"),
		[]seed{{busFile, "'1.2'", "'1.1'"}},
	},
	{
		"the topic drops duplicates", setting(topic, "requiresDuplicateDetection", true),
		[]seed{{busFile, "requiresDuplicateDetection: true", "requiresDuplicateDetection: false"}},
	},
	{
		"the window of duplicate detection is stated and long enough", window,
		[]seed{{"bicep/main.bicep", "'PT1H'", "'PT1M'"}, {busFile, "    duplicateDetectionHistoryTimeWindow: duplicateWindow\n", ""}},
	},
	{
		"the topic is not partitioned", setting(topic, "enablePartitioning", false),
		[]seed{{busFile, "enablePartitioning: false", "enablePartitioning: production"}},
	},
	{
		"the topic keeps order", setting(topic, "supportOrdering", true),
		[]seed{{busFile, "supportOrdering: true", "supportOrdering: false"}},
	},
	{
		"nothing deletes itself when idle", func(w *world, report func(string, ...any)) {
			for _, kind := range []string{topic, subscription} {
				w.each(kind, report, func(r bicep.Resource) {
					want(report, r.Symbol+".autoDeleteOnIdle", at(r.Body, "properties", "autoDeleteOnIdle"), nil)
				})
			}
		},
		[]seed{
			{busFile, "    enableExpress: false", "    enableExpress: false\n    autoDeleteOnIdle: 'P2D'"},
			{busFile, "    requiresSession: true", "    requiresSession: true\n    autoDeleteOnIdle: 'P2D'"},
		},
	},
	{
		"messages outlive a holiday", func(w *world, report func(string, ...any)) {
			for _, kind := range []string{topic, subscription} {
				w.each(kind, report, func(r bicep.Resource) {
					want(report, r.Symbol+".defaultMessageTimeToLive", at(r.Body, "properties", "defaultMessageTimeToLive"), "P14D")
				})
			}
		},
		[]seed{{busFile, "'P14D'", "'P1D'"}},
	},
	{
		"the subscription has sessions", setting(subscription, "requiresSession", true),
		[]seed{{busFile, "requiresSession: true", "requiresSession: false"}},
	},
	{
		"expired messages are dead-lettered", setting(subscription, "deadLetteringOnMessageExpiration", true),
		[]seed{{busFile, "deadLetteringOnMessageExpiration: true", "deadLetteringOnMessageExpiration: false"}},
	},
	{
		"messages that fail a filter are dead-lettered", setting(subscription, "deadLetteringOnFilterEvaluationExceptions", true),
		[]seed{{busFile, "    deadLetteringOnFilterEvaluationExceptions: true\n", ""}},
	},
	{
		"deliveries are limited", setting(subscription, "maxDeliveryCount", int64(10)),
		[]seed{{busFile, "maxDeliveryCount: 10", "maxDeliveryCount: 2000"}},
	},
	{
		"prod has capacity of its own", func(w *world, report func(string, ...any)) {
			for _, r := range w.prod {
				if r.Type == namespace {
					want(report, "the tier of prod", at(r.Body, "sku", "tier"), "Premium")
					want(report, "the sku of prod", at(r.Body, "sku", "name"), "Premium")
				}
			}
			for _, r := range w.dev {
				if r.Type == namespace {
					want(report, "the tier of dev", at(r.Body, "sku", "tier"), "Standard") // Basic has no topics
				}
			}
		},
		[]seed{{busFile, "tier: 'Standard'", "tier: 'Basic'"}, {busFile, "tier: 'Premium'", "tier: 'Standard'"}},
	},
	{
		"several namespaces share the keys, each with all that one has", severalNamespaces,
		[]seed{
			{"bicep/main.bicep", "'sb-${token}-${n}'", "'sb-${token}'"},
			{"bicep/main.bicep", "name: n == 0 ? 'pe-servicebus-${token}' : 'pe-servicebus-${token}-${n}'", "name: 'pe-servicebus-${token}'"},
			{"bicep/main.bicep", "suffix: n == 0 ? '' : '-${n}'", "suffix: ''"},
			{"bicep/main.bicep", "namespaceId: servicebus[n].outputs", "namespaceId: servicebus[0].outputs"},
			{"bicep/main.bicep", "serviceId: servicebus[n].outputs", "serviceId: servicebus[0].outputs"},
			{"bicep/main.bicep", "messagingNamespaces > 1 ? messagingNamespaces : 0", "1"},
			{"bicep/main.bicep", "@${servicebus[n].outputs.host}", "@${servicebus[0].outputs.host}"},
			{"bicep/main.bicep", "@batchSize(1)\n", ""},
			{relayFile, "'FEEDBOX_SERVICEBUS_SHARDS', value: join(shards, ',')", "'FEEDBOX_SERVICEBUS_SHARDS', value: join(shards, ' ')"},
			{relayFile, "empty(shards)", "!empty(shards)"},
		},
	},
}

// severalNamespaces compares a deployment of three namespaces with one of a single namespace.
func severalNamespaces(w *world, report func(string, ...any)) {
	different := func(resources []bicep.Resource) map[string]int {
		kinds, seen := map[string]int{}, map[string]bool{}
		for _, r := range resources {
			if !seen[r.ID] {
				kinds[r.Type]++
			}
			seen[r.ID] = true
		}
		return kinds
	}
	one, three := different(w.private), different(w.several)
	for kind, more := range map[string]int{namespace: 2, topic: 2, subscription: 2, azureRole: 2, metric: 4, "Microsoft.Network/privateEndpoints": 2} {
		want(report, "number of "+kind, three[kind], one[kind]+more)
	}
	watched, reached := map[string]bool{}, map[string]bool{}
	shards, others := "contacts", false
	for _, r := range w.several {
		watched[text(at(r.Body, "properties", "scopes", 0))] = true
		reached[text(at(r.Body, "properties", "privateLinkServiceConnections", 0, "properties", "privateLinkServiceId"))] = true
	}
	for _, r := range w.several {
		if r.Type != namespace {
			continue
		}
		if !watched[r.ID] || !reached[r.ID] {
			report("%s has no alert or no private endpoint", r.ID)
		}
		if others {
			shards += ",contacts@" + text(r.Body["name"]) + ".servicebus.windows.net"
		}
		others = true // all but the first
	}
	for list, resources := range map[string][]bicep.Resource{"": w.private, shards: w.several} {
		got := ""
		for _, r := range resources {
			for _, v := range environment(r) {
				if v.name == "FEEDBOX_SERVICEBUS_SHARDS" && r.File == relayFile {
					got = v.value
				}
			}
		}
		want(report, "FEEDBOX_SERVICEBUS_SHARDS", got, list)
	}
	if _, one := w.files["bicep/main.bicep"].Find("servicebusEndpoint").Decorator("batchSize"); !one {
		report("the endpoints of all namespaces are made at once, and share a DNS zone")
	}
}

// windows lists the allowed ISO 8601 durations of the duplicate window.
var windows = map[string]time.Duration{
	"PT10M": 10 * time.Minute, "PT30M": 30 * time.Minute, "PT1H": time.Hour, "PT2H": 2 * time.Hour, "PT6H": 6 * time.Hour, "P1D": 24 * time.Hour,
}

// window must be longer than a takeover after a crash plus the retries, which take minutes.
// Half an hour leaves a margin.
func window(w *world, report func(string, ...any)) {
	w.each(topic, report, func(r bicep.Resource) {
		stated := text(at(r.Body, "properties", "duplicateDetectionHistoryTimeWindow"))
		if windows[stated] < 30*time.Minute {
			report("the window %q is not one of at least half an hour", stated)
		}
	})
}
