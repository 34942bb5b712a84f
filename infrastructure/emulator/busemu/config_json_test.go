package busemu

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
)

func TestLoadConfig(t *testing.T) {
	topology, err := LoadConfig("testdata/Config.json")
	check(t, err)
	srv := startT(t, &Options{Topology: topology})
	q := must(srv.broker.Queue("queue.1"))(t)
	if q.DefaultTTL != time.Hour || q.DuplicateDetectionWindow != 20*time.Second || q.LockDuration != time.Minute || q.MaxDeliveryCount != 3 || q.RequiresSession {
		t.Errorf("queue.1 is %+v", q.Queue)
	}
	sub := must(srv.broker.Subscription("topic.1", "subscription.1"))(t)
	if len(sub.Rules) != 1 || sub.Rules[0].Filter.Correlation.Subject != "subject1" || sub.Rules[0].Filter.Correlation.Properties["prop1"] != "value1" {
		t.Errorf("rules of subscription.1: %+v", sub.Rules)
	}
	check(t, srv.Send(t.Context(), "topic.1",
		Message{ID: "yes", ContentType: "application/text", Subject: "subject1", Properties: map[string]any{"prop1": "value1"}},
		Message{ID: "no", ContentType: "application/text", Subject: "subject2"}))
	for name, want := range map[string]int{"subscription.1": 1, "subscription.2": 1, "subscription.3": 2} {
		if got := must(srv.Peek("topic.1/Subscriptions/"+name, 10))(t); len(got) != want {
			t.Errorf("%s got %d messages, want %d", name, len(got), want)
		}
	}
}

// TestConfigForwards: an entity may forward to one later in the file, two entities may forward
// to each other, and a rule may have an action.
func TestConfigForwards(t *testing.T) {
	topology, err := ParseConfig([]byte(`{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns",
		"Queues": [
			{"Name": "first", "Properties": {"ForwardTo": "second", "ForwardDeadLetteredMessagesTo": "dead"}},
			{"Name": "second", "Properties": {"ForwardTo": "topic"}},
			{"Name": "a", "Properties": {"ForwardTo": "b"}},
			{"Name": "b", "Properties": {"ForwardTo": "a"}},
			{"Name": "end", "Properties": {"MaxDeliveryCount": 3, "DeadLetteringOnMessageExpiration": true}},
			{"Name": "dead"}],
		"Topics": [{"Name": "topic", "Subscriptions": [{"Name": "sub", "Properties": {"ForwardTo": "end"}, "Rules": [{"Name": "rule", "Properties": {
			"FilterType": "Sql", "SqlFilter": {"SqlExpression": "sys.MessageId = '123456' AND userProp1 = 'value1'"}, "Action": {"SqlExpression": "SET sys.To = 'Entity'"}}}]}]}]
	}], "Logging": {"Type": "File"}}}`))
	check(t, err)
	srv := startT(t, &Options{Topology: topology})
	check(t, srv.Send(t.Context(), "first", Message{ID: "123456", Properties: map[string]any{"userProp1": "value1"}}, Message{ID: "other"}))
	got := must(srv.Peek("end", 10))(t)
	if len(got) != 1 || got[0].ID != "123456" {
		t.Errorf("at the end are %+v", got)
	}
}

func TestInvalidConfigsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                                "unexpected EOF",
		`{"UserConfig":{"Namespaces":[]}}`: "0 namespaces",
		`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"LockDuration":"PT0S"}}]}]}}`:                                                                 "must be positive",
		`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"MaxDeliveryCount":0}}]}]}}`:                                                                  "must be positive",
		`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"LockDuration":"1 min"}}]}]}}`:                                                                "ISO 8601",
		`{"UserConfig":{"Namespaces":[{"Queues":[{"Name":"q","Properties":{"Nonsense":1}}]}]}}`:                                                                          "Nonsense",
		`{"UserConfig":{"Namespaces":[{"Topics":[{"Name":"t","Subscriptions":[{"Name":"s","Rules":[{"Name":"a"},{"Name":"b","Properties":{"FilterType":"Sql"}}]}]}]}]}}`: "rule b",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	b, err := os.ReadFile("testdata/Config.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = ParseConfig(b) })
}

// TestForwardingOfATopologyCanBeRead: an entity that was not created by the admin API shows where it forwards to.
// Otherwise a client that reads it, changes something else and writes it back would end the forwarding.
func TestForwardingOfATopologyCanBeRead(t *testing.T) {
	ctx := t.Context()
	srv := startT(t, nil)
	check(t, srv.CreateQueue(ctx, Queue{Name: "end"}))
	check(t, srv.CreateQueue(ctx, Queue{Name: "q", ForwardTo: "end", ForwardDeadLetteredTo: "end"}))
	check(t, srv.CreateTopic(ctx, Topic{Name: "t", Subscriptions: []Subscription{{Name: "s", ForwardTo: "end", ForwardDeadLetteredTo: "end"}}}))
	c := adminClient(t, srv, srv.ConnectionString())
	q := must(c.GetQueue(ctx, "q", nil))(t)
	s := must(c.GetSubscription(ctx, "t", "s", nil))(t)
	for name, got := range map[string]*string{
		"queue": q.ForwardTo, "dead letters of the queue": q.ForwardDeadLetteredMessagesTo,
		"subscription": s.ForwardTo, "dead letters of the subscription": s.ForwardDeadLetteredMessagesTo,
	} {
		if got == nil || *got != "end" {
			t.Errorf("%s: it forwards to %v, want end", name, got)
		}
	}
	q.MaxDeliveryCount, s.MaxDeliveryCount = to.Ptr(int32(3)), to.Ptr(int32(3))
	must(c.UpdateQueue(ctx, "q", q.QueueProperties, nil))(t)
	must(c.UpdateSubscription(ctx, "t", "s", s.SubscriptionProperties, nil))(t)
	check(t, srv.Send(ctx, "q", Message{ID: "1"}))
	check(t, srv.Send(ctx, "t", Message{ID: "2"}))
	if end := must(c.GetQueueRuntimeProperties(ctx, "end", nil))(t); end.ActiveMessageCount != 2 {
		t.Errorf("%d messages were forwarded after the updates, want 2", end.ActiveMessageCount)
	}
}
