package infra

import (
	"regexp"
	"strings"

	"feedbox/tests/infra/bicep"
)

const (
	alertsFile    = "bicep/modules/alerts.bicep"
	busAlertsFile = "bicep/modules/servicebus-alerts.bicep"
	metric        = "Microsoft.Insights/metricAlerts"
	logAlert      = "Microsoft.Insights/scheduledQueryRules"
	diagnostic    = "Microsoft.Insights/diagnosticSettings"
)

// watched lists the types that must have a diagnostic setting, and whether they have logs
// besides metrics.
var watched = map[string]bool{
	account: true, namespace: true, vaultType: true, "Microsoft.ContainerRegistry/registries": true, "Microsoft.App/managedEnvironments": true, app: false,
}

var watchingChecks = []check{
	{
		"every resource sends logs and metrics to the workspace", diagnostics,
		[]seed{
			{busFile, "{ categoryGroup: 'allLogs', enabled: true }", "{ categoryGroup: 'allLogs', enabled: false }"},
			{apiFile, "  scope: app\n", ""},
			{envFile, "{ category: 'AllMetrics', enabled: true }", "{ category: 'Basic', enabled: true }"},
			{cosmosFile, "  scope: account\n", "  scope: database\n"},
		},
	},
	{
		"every alert resolves itself and tells people", alerts,
		[]seed{
			{alertsFile, "autoMitigate: true", "autoMitigate: false"},
			{alertsFile, "actions: [ { actionGroupId: people.id } ]", "actions: []"},
			{alertsFile, "actions: { actionGroups: [ people.id ] }", "actions: { actionGroups: [] }"},
			{alertsFile, "    severity: 1\n    enabled: true\n", "    severity: 1\n    enabled: false\n"},
		},
	},
	{
		"what has to wake people does", reasons,
		[]seed{
			{busAlertsFile, "'DeadletteredMessages'", "'ActiveMessages'"},
			{alertsFile, "values: [ '429' ]", "values: [ '449' ]"},
			{alertsFile, "values: [ '401', '403' ]", "values: [ '401' ]"},
			{alertsFile, "scopes: [ relayId ]", "scopes: [ apiId ]"},
			{alertsFile, "\"event parked\", ", ""},
			{alertsFile, "\"a lease has two records\", ", ""},
			{alertsFile, "          operator: 'LessThan'\n", "          operator: 'GreaterThan'\n"},
			{alertsFile, "msg == \"unsent events grow old and will expire\"", "msg == \"lease lost\""},
			{alertsFile, "msg == \"range is not read\"", "msg == \"lease lost\""},
			{alertsFile, "tobool(entry.paused)", "tobool(entry.known)"},
			{alertsFile, "tobool(entry.known) == false and ", ""},
		},
	},
	{
		"log alerts look for lines that the service writes", logLines,
		[]seed{{alertsFile, "\"range is stuck\"", "\"range got stuck\""}, {alertsFile, "msg == \"lease lost\"", "msg == \"lease stolen\""}, {alertsFile, "entry.paused", "entry.halted"}},
	},
}

func diagnostics(w *world, report func(string, ...any)) {
	for name, resources := range w.running() {
		set := map[string]bicep.Resource{}
		for _, r := range resources {
			if r.Type == diagnostic {
				set[r.Scope] = r
			}
		}
		for _, r := range resources {
			logs, ok := watched[r.Type]
			if !ok {
				continue
			}
			d, ok := set[r.ID]
			if !ok {
				report("%s: %s has no diagnostic setting", name, r.ID)
				continue
			}
			want(report, "metrics of "+r.ID, at(d.Body, "properties", "metrics", 0, "category"), "AllMetrics")
			want(report, "metrics of "+r.ID, at(d.Body, "properties", "metrics", 0, "enabled"), true)
			if !strings.HasPrefix(text(at(d.Body, "properties", "workspaceId")), "/Microsoft.OperationalInsights/workspaces/") {
				report("%s: %s sends to %v", name, r.ID, at(d.Body, "properties", "workspaceId"))
			}
			if first := at(d.Body, "properties", "logs", 0); logs && at(first, "enabled") != true {
				report("%s: %s sends no logs", name, r.ID)
			}
		}
	}
}

func alerts(w *world, report func(string, ...any)) {
	for _, kind := range []string{metric, logAlert} {
		w.each(kind, report, func(r bicep.Resource) {
			want(report, r.Symbol+".autoMitigate", at(r.Body, "properties", "autoMitigate"), true)
			want(report, r.Symbol+".enabled", at(r.Body, "properties", "enabled"), true)
			to := at(r.Body, "properties", "actions", 0, "actionGroupId")
			if kind == logAlert {
				to = at(r.Body, "properties", "actions", "actionGroups", 0)
			}
			if !strings.HasPrefix(text(to), "/Microsoft.Insights/actionGroups/") {
				report("%s tells nobody", r.Symbol)
			}
		})
	}
}

// reasons requires an alert for each reason, named by metric and dimension or by a log
// message in a query.
func reasons(w *world, report func(string, ...any)) {
	wanted := []string{
		"DeadletteredMessages > namespaces", "TotalRequests 429 > databaseAccounts", "RestartCount relay", "RestartCount api", "Requests 5xx api", "Requests 401 403 api", "Requests 429 api", "TotalRequests 401 403 > databaseAccounts", "ThrottledRequests > namespaces",
		"unsent events grow old and will expire", "relay.lag missing", "event parked", "events missing from the feed",
		"range not read for longer than the event TTL; events may have expired unsent", "the store failed over; its last changes may be lost", "a lease has two records", "two leases overlap", "another relay has this instance name",
		"range is not read", "relay.lag paused", "relay.lag known", "relay.lag oldest_age_s",
	}
	found := map[string]bool{}
	for _, r := range w.prod {
		first := at(r.Body, "properties", "criteria", "allOf", 0)
		switch r.Type {
		case metric:
			name := text(at(first, "metricName"))
			for _, value := range list(at(first, "dimensions", 0, "values")) {
				if value != "*" {
					name += " " + text(value)
				}
			}
			scope := text(at(r.Body, "properties", "scopes", 0))
			switch {
			case strings.Contains(scope, "/ca-api-"):
				name += " api"
			case strings.Contains(scope, "/ca-relay-"):
				name += " relay"
			default:
				name += " > " + strings.Split(scope, "/")[2]
			}
			found[name] = true
		case logAlert:
			for _, message := range messages(text(at(first, "query"))) {
				if at(first, "operator") == "LessThan" {
					message += " missing"
				}
				if field := logField.FindStringSubmatch(text(at(first, "query"))); field != nil {
					message += " " + field[1]
				}
				found[message] = true
			}
		}
	}
	for _, reason := range wanted {
		if !found[reason] {
			report("nothing fires for %q", reason)
		}
	}
}

var (
	quoted   = regexp.MustCompile(`"([^"]*)"`)
	logField = regexp.MustCompile(`(?:tobool|todouble)\(entry\.(\w+)\)`) // of the lines that a query compares
)

// messages returns the log messages in a query.
func messages(query string) []string {
	var all []string
	_, query, _ = strings.Cut(query, "where msg")
	for _, m := range quoted.FindAllStringSubmatch(query, -1) {
		all = append(all, m[1])
	}
	return all
}

func logLines(w *world, report func(string, ...any)) {
	for _, r := range w.prod {
		if r.Type != logAlert {
			continue
		}
		for _, message := range messages(text(at(r.Body, "properties", "criteria", "allOf", 0, "query"))) {
			if !logged(w, message) {
				report("%s looks for %q, which the service never logs", r.Symbol, message)
			}
		}
		if field := logField.FindStringSubmatch(text(at(r.Body, "properties", "criteria", "allOf", 0, "query"))); field != nil && !logged(w, field[1]) {
			report("%s compares %q, which the service never logs", r.Symbol, field[1])
		}
	}
}

func logged(w *world, message string) bool {
	for file, source := range w.source {
		if (strings.HasPrefix(file, "infrastructure/relay/monitor/") || file == "changefeed/log.go") && strings.Contains(source, `"`+message+`"`) {
			return true
		}
	}
	return false
}
