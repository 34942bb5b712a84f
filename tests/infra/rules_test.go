package infra

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"feedbox/tests/testenv"
)

// alertCase has the series of one situation, in promtool's notation with a sample each 30 s, and
// whether the alert fires at the time at. A firing case has the summary that the operator reads.
type alertCase struct {
	alert  string
	at     string
	series []string          // pairs: name, values
	fires  string            // the summary; "": silent
	labels map[string]string // besides the severity
}

const (
	retries  = `outbox_send_retries_total{instance="a"}`
	accepted = `messaging_client_sent_messages_total{instance="a"}`
	failed   = `messaging_client_operation_duration_seconds_count{instance="a",error_type="entity_not_found"}`
	oldest   = `outbox_oldest_unpublished_seconds{lease="l1"}`
	eventTTL = `outbox_event_ttl_seconds{container="orders"}`
	resent   = `outbox_resent_age_seconds_count{instance="a"}`
	inWindow = `outbox_resent_age_seconds_bucket{instance="a",le="600"}`
	lost     = `outbox_lease_transitions_total{instance="a",kind="lost"}`
	expired  = `outbox_events_expired_total{instance="a"}`
	absences = `outbox_range_absences_total{instance="a"}`
	dead     = `outbox_consumer_dead_lettered_total{instance="a",messaging_destination_name="contacts",messaging_destination_subscription_name="billing"}`
	kept     = `outbox_consumer_parked_total{instance="a",messaging_destination_name="contacts",messaging_destination_subscription_name="billing"}`
	gaps     = `outbox_consumer_gaps_total{instance="a",messaging_destination_name="contacts"}` // of a queue

	acceptsNothing = "sends are tried and the broker accepts nothing; run feedbox doctor for the cause"
	beyondWindow   = "events older than the default duplicate window of 10 minutes were sent again: consumers may see them twice"
	readTooLate    = "a range was not read for longer than FEEDBOX_EVENT_TTL, so events may have expired unsent; consumers must read the contacts themselves"
	noRelay        = "no relay owns a lease, so no event is sent"
)

var alertCases = []alertCase{
	{alert: "FeedboxNoRelay", at: "5m", series: []string{`outbox_lease_owned{instance="a"}`, "0x20"}, fires: noRelay},
	{alert: "FeedboxNoRelay", at: "5m", fires: noRelay}, // nothing is scraped
	{alert: "FeedboxNoRelay", at: "5m", series: []string{`outbox_lease_owned{instance="a"}`, "0x20", `outbox_lease_owned{instance="b"}`, "2x20"}},
	{alert: "FeedboxNoRelay", at: "5m", series: []string{`outbox_lease_owned{container="data"}`, "2x20", `outbox_lease_owned{container="orders"}`, "0x20"}, fires: "no relay owns a lease of container orders, so no event is sent", labels: map[string]string{"container": "orders"}},
	{alert: "FeedboxNoRelay", at: "6m", series: []string{`outbox_lease_owned{instance="a"}`, "2x10 0x10"}}, // a minute, as in a deployment

	{alert: "FeedboxEventsGrowOld", at: "6m", series: []string{oldest, "400x20"}, fires: "the oldest unsent event is 6m 40s old; run feedbox lag and feedbox doctor"},
	{alert: "FeedboxEventsGrowOld", at: "6m", series: []string{oldest, "200x20"}},
	{alert: "FeedboxEventsWillExpire", at: "6m", series: []string{oldest, "216001x20"}, fires: "the oldest unsent event is 2d 12h 0m 1s old, more than a quarter of FEEDBOX_EVENT_TTL, after which it is lost"},
	{alert: "FeedboxEventsWillExpire", at: "6m", series: []string{oldest, "216000x20"}},
	{alert: "FeedboxEventsWillExpire", at: "6m", series: []string{oldest, "21601x20", eventTTL, "86400x20"}, fires: "the oldest unsent event is 6h 0m 1s old, more than a quarter of FEEDBOX_EVENT_TTL, after which it is lost"},
	{alert: "FeedboxEventsWillExpire", at: "6m", series: []string{oldest, "216001x20", eventTTL, "1000000x20"}},
	{alert: "FeedboxEventsExpired", at: "21m", series: []string{expired, "0x40 1x10"}, fires: "events expired before they were sent; consumers must read the contacts themselves", labels: map[string]string{"instance": "a"}},
	{alert: "FeedboxEventsExpired", at: "6m", series: []string{expired, "_x10 1x10"}, fires: "events expired before they were sent; consumers must read the contacts themselves", labels: map[string]string{"instance": "a"}}, // the first page after a long stop
	{alert: "FeedboxEventsExpired", at: "30m", series: []string{expired, "0x10 1x90"}},
	{alert: "FeedboxEventsExpired", at: "30m", series: []string{expired, "_x10 1x90"}},
	{alert: "FeedboxEventsExpired", at: "33m", series: []string{expired, "1x20 _x40 1x30"}}, // not scraped for 20 minutes
	{alert: "FeedboxRangeReadTooLate", at: "21m", series: []string{absences, "0x40 1x10"}, fires: readTooLate},
	{alert: "FeedboxRangeReadTooLate", at: "6m", series: []string{absences, "_x10 1x10"}, fires: readTooLate}, // acquired before the first scrape
	{alert: "FeedboxRangeReadTooLate", at: "6m", series: []string{`outbox_range_absences_total{container="data"}`, "_x10 0x10", `outbox_range_absences_total{container="orders"}`, "_x10 1x10"}, fires: strings.Replace(readTooLate, "a range", "a range of container orders", 1), labels: map[string]string{"container": "orders"}},
	{alert: "FeedboxRangeReadTooLate", at: "30m", series: []string{absences, "0x10 1x90"}},
	{alert: "FeedboxRangeReadTooLate", at: "30m", series: []string{absences, "_x10 1x90"}},

	{alert: "FeedboxKeysParked", at: "6m", series: []string{`outbox_parked_keys{instance="a"}`, "2x20"}, fires: "2 contacts are parked; run feedbox parked ls"},
	{alert: "FeedboxKeysParked", at: "6m", series: []string{`outbox_parked_keys{instance="a"}`, "0x20"}},
	{alert: "FeedboxParkedUnknown", at: "6m", series: []string{`outbox_parked_unknown{instance="a",reason="failed"}`, "1x20"}, fires: "no relay can read how many contacts are parked (failed); run feedbox doctor", labels: map[string]string{"reason": "failed"}},
	{alert: "FeedboxParkedUnknown", at: "6m", series: []string{`outbox_parked_unknown{instance="a",reason="failed"}`, "1x20", `outbox_parked_keys{instance="b"}`, "0x20"}}, // another relay can
	{alert: "FeedboxParkedUnknown", at: "6m", series: []string{`outbox_parked_unknown{container="orders",reason="failed"}`, "1x20", `outbox_parked_keys{container="data"}`, "0x20"}, fires: "no relay can read how many contacts are parked (failed); run feedbox doctor", labels: map[string]string{"reason": "failed"}},

	{alert: "FeedboxBrokerAcceptsNothing", at: "10m", series: []string{retries, "0x10 0+6x20", accepted, "0+900x10 9000x20"}, fires: acceptsNothing}, // an outage after 5 min
	{alert: "FeedboxBrokerAcceptsNothing", at: "6m", series: []string{retries, "0x20", failed, "1+6x20", accepted, "0x20"}, fires: acceptsNothing},   // one key, a topic that never existed
	{alert: "FeedboxBrokerAcceptsNothing", at: "10m", series: []string{retries, "0+0.5x40", accepted, "0+30000x40"}},                                 // one retry a minute among 1,000 accepted a second
	{alert: "FeedboxBrokerAcceptsNothing", at: "10m", series: []string{retries, "7x40", failed, "9x40", accepted, "9000x40"}},                        // idle after an outage
	{alert: "FeedboxBrokerAcceptsNothing", at: "7m", series: []string{retries, "0x40", failed, "0x10 1x30", accepted, "9000x40"}},                    // one message refused, then nothing to send

	{alert: "FeedboxDependencyFails", at: "3m", series: []string{`outbox_dependency_up{dependency="serviceBus"}`, "0x20", `outbox_dependency_up{dependency="cosmos"}`, "1x20"}, fires: "serviceBus does not answer or refuses; see the body of /readyz and feedbox doctor", labels: map[string]string{"dependency": "serviceBus"}},
	{alert: "FeedboxDependencyFails", at: "3m", series: []string{`outbox_dependency_up{dependency="serviceBus"}`, "1x20"}},

	{alert: "FeedboxDeliverySlow", at: "16m", series: buckets("outbox_delivery_duration_seconds_bucket", "10", "30"), fires: "one event in a hundred takes 29.8s from commit to the broker"},
	{alert: "FeedboxDeliverySlow", at: "16m", series: buckets("outbox_delivery_duration_seconds_bucket", "0.5", "1")},

	{alert: "FeedboxBeyondDuplicateWindow", at: "8m", series: []string{resent, "1x10 2x10", inWindow, "1x20"}, fires: beyondWindow},
	{alert: "FeedboxBeyondDuplicateWindow", at: "8m", series: []string{resent, "_x10 1x10", inWindow, "_x10 0x10"}, fires: beyondWindow}, // the first page after a restart
	{alert: "FeedboxBeyondDuplicateWindow", at: "8m", series: []string{resent, "0+1x20", inWindow, "0+1x20"}},
	{alert: "FeedboxBeyondDuplicateWindow", at: "3h", series: []string{resent, "_x10 1x400", inWindow, "_x10 0x400"}},

	{alert: "FeedboxRangesPaused", at: "31m", series: []string{`outbox_range_paused{lease="l1"}`, "1x80", `outbox_range_paused{lease="l1",instance="b"}`, "1x80", `outbox_range_paused{lease="l2"}`, "0x80"}, fires: "1 ranges are paused by an operator, so their events wait and may expire; run feedbox leases resume"},
	{alert: "FeedboxRangesPaused", at: "31m", series: []string{`outbox_range_paused{lease="l1",container="data"}`, "1x80", `outbox_range_paused{lease="l1",container="orders"}`, "1x80"}, fires: "2 ranges are paused by an operator, so their events wait and may expire; run feedbox leases resume"},
	{alert: "FeedboxRangesPaused", at: "31m", series: []string{`outbox_range_paused{lease="l1"}`, "0x10 1x40 0x30", `outbox_range_paused{lease="l2"}`, "0x80"}}, // 20 minutes
	{alert: "FeedboxFeedHeld", at: "5m", series: []string{"outbox_feed_held_seconds", "0+30x20"}, fires: "an open transaction of the database has held back all events for 5m 0s; run feedbox doctor to find it"},
	{alert: "FeedboxFeedHeld", at: "5m", series: []string{"outbox_feed_held_seconds", "0 30 60 90 0x20"}},
	{alert: "FeedboxRangeUnread", at: "6m", series: []string{`outbox_range_unread_total{instance="a"}`, "0x2 1 1 2 2 3 3 4x20"}, fires: "a range of the feed is not read, so its events are not sent; run feedbox lag for the range and its cause"},
	{alert: "FeedboxRangeUnread", at: "6m", series: []string{`outbox_range_unread_total{instance="a"}`, "0x4 1x20"}},
	{alert: "FeedboxLagUnknown", at: "6m", series: []string{`outbox_lag_unknown{lease="l1",reason="failed"}`, "1x20", `outbox_lag_unknown{lease="l2",reason="failed"}`, "1x20"}, fires: "the lag of 2 ranges is unknown (failed), so no alert on lag or age can fire for them; run feedbox lag", labels: map[string]string{"reason": "failed"}},
	{alert: "FeedboxLagUnknown", at: "6m", series: []string{`outbox_lag_unknown{lease="l1",reason="starting"}`, "1 1 _x20", `outbox_lag{lease="l1"}`, "0x20"}},

	{alert: "FeedboxLeasesUneasy", at: "15m", series: []string{lost, "0+1x40"}, fires: "leases are lost repeatedly: relays are too slow or compete"},
	{alert: "FeedboxLeasesUneasy", at: "15m", series: []string{lost, "0x10 2x30", `outbox_lease_transitions_total{instance="a",kind="acquired"}`, "0+5x40"}},

	{alert: "FeedboxConsumerDeadLetters", at: "21m", series: []string{dead, "0x40 1x30", gaps, "0x70"}, fires: "a consumer of contacts billing dead-lettered events; its log has their reasons", labels: map[string]string{"messaging_destination_name": "contacts", "messaging_destination_subscription_name": "billing"}},
	{alert: "FeedboxConsumerDeadLetters", at: "6m", series: []string{dead, "_x10 1x30"}, fires: "a consumer of contacts billing dead-lettered events; its log has their reasons", labels: map[string]string{"messaging_destination_name": "contacts", "messaging_destination_subscription_name": "billing"}}, // the first event after a restart
	{alert: "FeedboxConsumerDeadLetters", at: "30m", series: []string{dead, "0x10 1x90"}},
	{alert: "FeedboxConsumerDeadLetters", at: "30m", series: []string{dead, "_x10 1x90"}},
	{alert: "FeedboxConsumerDeadLetters", at: "38m", series: []string{dead, "1x20 _x40 1x60"}},
	{alert: "FeedboxConsumerParked", at: "21m", series: []string{kept, "0x40 1x30", dead, "0x70"}, fires: "a consumer of contacts billing parked events, and their keys wait; run feedbox parked ls with --consumer", labels: map[string]string{"messaging_destination_name": "contacts", "messaging_destination_subscription_name": "billing"}},
	{alert: "FeedboxConsumerParked", at: "6m", series: []string{kept, "_x10 1x30"}, fires: "a consumer of contacts billing parked events, and their keys wait; run feedbox parked ls with --consumer", labels: map[string]string{"messaging_destination_name": "contacts", "messaging_destination_subscription_name": "billing"}},
	{alert: "FeedboxConsumerParked", at: "30m", series: []string{kept, "0x10 1x90"}},
	{alert: "FeedboxConsumerGap", at: "21m", series: []string{gaps, "0x40 1x30"}, fires: "a consumer of contacts  handled events although earlier ones of their keys are missing; its log has the keys", labels: map[string]string{"messaging_destination_name": "contacts"}},
	{alert: "FeedboxConsumerGap", at: "6m", series: []string{gaps, "_x10 1x30"}, fires: "a consumer of contacts  handled events although earlier ones of their keys are missing; its log has the keys", labels: map[string]string{"messaging_destination_name": "contacts"}},
	{alert: "FeedboxConsumerGap", at: "21m", series: []string{gaps, "0x70", dead, "0x40 1x30"}},

	{alert: "FeedboxAPIFails", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="503"}`, "0+2x40", `http_server_request_duration_seconds_count{http_response_status_code="200"}`, "0+8x40"}, fires: "20% of the requests fail"},
	{alert: "FeedboxAPIFails", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="503"}`, "0+1x40", `http_server_request_duration_seconds_count{http_response_status_code="200"}`, "0+999x40"}},
	{alert: "FeedboxAPIRefuses", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="401"}`, "0+10x40", `http_server_request_duration_seconds_count{http_response_status_code="403"}`, "0+5x40"}, fires: "150 requests were refused in five minutes for a wrong credential or a missing role"},
	{alert: "FeedboxAPIRefuses", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="401"}`, "0+5x40", `http_server_request_duration_seconds_count{http_response_status_code="404"}`, "0+99x40"}},
	{alert: "FeedboxAPILimits", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="429"}`, "0+200x40"}, fires: "2k requests exceeded a rate or a share in five minutes"},
	{alert: "FeedboxAPILimits", at: "12m", series: []string{`http_server_request_duration_seconds_count{http_response_status_code="429"}`, "0+20x40"}},
	{alert: "FeedboxAPISlow", at: "16m", series: buckets("http_server_request_duration_seconds_bucket", "1", "2.5"), fires: "one request in a hundred takes 2.485s"},
	{alert: "FeedboxAPISlow", at: "16m", series: buckets("http_server_request_duration_seconds_bucket", "0.1", "0.25")},
}

// buckets returns the series of a histogram of which all values are in the bucket of the second bound.
func buckets(name, below, bound string) []string {
	return []string{name + `{le="` + below + `"}`, "0x40", name + `{le="` + bound + `"}`, "0+10x40", name + `{le="+Inf"}`, "0+10x40"}
}

// promRules is the part of rules.yaml that the cases depend on.
type promRules struct {
	Spec struct {
		Groups []struct {
			Rules []struct {
				Alert  string
				Labels map[string]string
			}
		}
	}
}

// TestEveryAlertHasAFiringAndASilentCase needs no promtool.
func TestEveryAlertHasAFiringAndASilentCase(t *testing.T) {
	for alert := range severities(t, readRules(t)) {
		for what, fires := range map[string]bool{"fires": true, "is silent": false} {
			if !slices.ContainsFunc(alertCases, func(c alertCase) bool { return c.alert == alert && (c.fires != "") == fires }) {
				t.Errorf("%s: there is no case in which it %s", alert, what)
			}
		}
	}
}

// TestAlertRules runs the cases, and then with mistakes in the rules that the cases must find.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	text := readRules(t)
	if out, err := testRules(t, promtool, text, alertCases); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	mistakes := []seed{
		{old: "            and sum(increase(messaging_client_sent_messages_total[2m])) == 0\n"}, // fires although the broker accepts
		{old: "or sum(increase(messaging_client_operation_duration_seconds_count{error_type!=\"\"}[2m])) > 0"},
		{old: "[2m])) == 0\n          for: 3m", new: "[2m])) == 0\n          for: 1m"},
		{old: `le=~"600|600.0"`, new: `le="600.0"`}, // Prometheus 2 has no such bucket
		{old: "{{ $labels.dependency }}", new: "{{ $labels.need }}"},
		{old: `kind="lost"`, new: `kind="acquired"`},
		{old: "count(max by (container, lease) (outbox_range_paused) == 1)", new: "count(outbox_range_paused == 1)"}, // two relays, one range
		{old: "(outbox_range_unread_total[5m])) >= 2", new: "(outbox_range_unread_total[5m])) > 0"},
		{old: `"401|403"`, new: `"401"`},
		{old: "increase(outbox_consumer_dead_lettered_total[15m])", new: "increase(outbox_consumer_gaps_total[15m])"},
		{old: "or (outbox_events_expired_total unless last_over_time(outbox_events_expired_total[1h] offset 10m)) > 0"},
		{old: " unless last_over_time(outbox_events_expired_total[1h] offset 10m)"},
		{old: "last_over_time(outbox_events_expired_total[1h] offset 10m)", new: "outbox_events_expired_total offset 10m"},
		{old: "or sum by (container) (outbox_range_absences_total unless last_over_time(outbox_range_absences_total[1h] offset 10m)) > 0"},
		{old: " unless last_over_time(outbox_range_absences_total[1h] offset 10m)"},
		{old: "or sum by (messaging_destination_name, messaging_destination_subscription_name) (outbox_consumer_dead_lettered_total unless last_over_time(outbox_consumer_dead_lettered_total[1h] offset 15m)) > 0"},
		{old: "or sum by (messaging_destination_name, messaging_destination_subscription_name) (outbox_consumer_parked_total unless last_over_time(outbox_consumer_parked_total[1h] offset 15m)) > 0"},
		{old: "or sum by (messaging_destination_name, messaging_destination_subscription_name) (outbox_consumer_gaps_total unless last_over_time(outbox_consumer_gaps_total[1h] offset 15m)) > 0"},
		{old: "increase(outbox_consumer_parked_total[15m])", new: "increase(outbox_consumer_dead_lettered_total[15m])"},
	}
	for _, mistake := range mistakes[:testenv.Sample(t, 3, len(mistakes))] {
		if !strings.Contains(text, mistake.old) {
			t.Fatalf("the rules no longer contain %q: seed another mistake", mistake.old)
		}
		if out, err := testRules(t, promtool, strings.ReplaceAll(text, mistake.old, mistake.new), casesAround(t, text, mistake.old)); err == nil || !strings.Contains(out, "alertname:") {
			t.Errorf("%q in place of %q was not found: %v\n%s", mistake.new, mistake.old, err, out)
		}
	}
}

func readRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rulesYAML))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// severities returns the severity of each alert.
func severities(t *testing.T, text string) map[string]string {
	t.Helper()
	var rules promRules
	if err := yaml.Unmarshal([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			found[r.Alert] = r.Labels["severity"]
		}
	}
	return found
}

// casesAround returns the cases of the alerts whose rules contain part.
func casesAround(t *testing.T, text, part string) []alertCase {
	t.Helper()
	var around []alertCase
	for _, rule := range strings.Split(text, "- alert: ")[1:] {
		if !strings.Contains(rule, part) {
			continue
		}
		name, _, _ := strings.Cut(rule, "\n")
		for _, c := range alertCases {
			if c.alert == name {
				around = append(around, c)
			}
		}
	}
	if len(around) == 0 {
		t.Fatalf("no alert contains %q", part)
	}
	return around
}

// testRules runs the cases on the spec of a PrometheusRule.
func testRules(t *testing.T, promtool, text string, cases []alertCase) (out string, err error) {
	t.Helper()
	type object = map[string]any
	severity := severities(t, text)
	var tests []any
	for _, c := range cases {
		if severity[c.alert] == "" {
			t.Errorf("there is no alert %s, or it has no severity", c.alert)
		}
		series, expected := []any{}, []any{}
		for i := 0; i < len(c.series); i += 2 {
			series = append(series, object{"series": c.series[i], "values": c.series[i+1]})
		}
		if c.fires != "" {
			labels := map[string]string{"severity": severity[c.alert]}
			maps.Copy(labels, c.labels)
			expected = append(expected, object{"exp_labels": labels, "exp_annotations": object{"summary": c.fires}})
		}
		tests = append(tests, object{"interval": "30s", "input_series": series, "alert_rule_test": []any{
			object{"eval_time": c.at, "alertname": c.alert, "exp_alerts": expected},
		}})
	}
	var resource struct{ Spec object }
	if err := yaml.Unmarshal([]byte(text), &resource); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, content := range map[string]any{
		"rules.yaml": resource.Spec,
		"cases.yaml": object{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "30s", "tests": tests},
	} {
		encoded, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), encoded, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), promtool, "test", "rules", "cases.yaml")
	run.Dir = folder
	said, err := run.CombinedOutput()
	return strings.TrimSpace(string(said)), err
}
