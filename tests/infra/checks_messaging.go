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
