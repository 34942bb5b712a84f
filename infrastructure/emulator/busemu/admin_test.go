package busemu

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// plainHTTP sends the admin client's https requests to the emulator's HTTP port.
type plainHTTP struct{ addr string }

func (p plainHTTP) Do(req *http.Request) (*http.Response, error) {
	r := req.Clone(req.Context())
	u := *r.URL
	u.Scheme, u.Host = "http", p.addr
	r.URL = &u
	return http.DefaultTransport.RoundTrip(r)
}

func adminClient(t *testing.T, srv *Server, connectionString string) *admin.Client {
	t.Helper()
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	c, err := admin.NewClientFromConnectionString(connectionString, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: plainHTTP{srv.AdminAddr()}},
	})
	check(t, err)
	return c
}

// TestAdminEntities: entities created by the SDK's admin client can be read, listed, changed
// and deleted.
func TestAdminEntities(t *testing.T) {
	ctx := t.Context()
	srv := startT(t, nil)
	c := adminClient(t, srv, srv.ConnectionString())
	created := must(c.CreateQueue(ctx, "q", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		RequiresSession: to.Ptr(true), LockDuration: to.Ptr("PT30S"), UserMetadata: to.Ptr(`<a & "b">`),
	}}))(t)
	if *created.LockDuration != "PT30S" || *created.UserMetadata != `<a & "b">` || *created.MaxDeliveryCount != 10 || *created.DefaultMessageTimeToLive != isoduration.MaxTimeSpan {
		t.Errorf("created %+v", created.QueueProperties)
	}
	if _, err := c.CreateQueue(ctx, "q", nil); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("created twice: %v", err)
	}
	created.MaxDeliveryCount = to.Ptr(int32(3))
	updated := must(c.UpdateQueue(ctx, "q", created.QueueProperties, nil))(t)
	if *updated.MaxDeliveryCount != 3 {
		t.Errorf("updated %+v", updated.QueueProperties)
	}
	must(c.CreateTopic(ctx, "t", nil))(t)
	must(c.CreateSubscription(ctx, "t", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "red", Filter: &admin.CorrelationFilter{Subject: to.Ptr("red")}},
	}}))(t)
	must(c.CreateRule(ctx, "t", "s", &admin.CreateRuleOptions{Name: to.Ptr("big"), Filter: &admin.SQLFilter{Expression: "size > @n", Parameters: map[string]any{"@n": int64(10)}}}))(t)
	check(t, srv.Send(ctx, "t", Message{ID: "1", Subject: "red"}, Message{ID: "2", Subject: "blue"}, Message{ID: "3", Properties: map[string]any{"size": 11}}))
	props := must(c.GetSubscriptionRuntimeProperties(ctx, "t", "s", nil))(t)
	if props.ActiveMessageCount != 2 {
		t.Errorf("%d messages passed the rules, want 2", props.ActiveMessageCount)
	}
	var rules []string
	for pager := c.NewListRulesPager("t", "s", nil); pager.More(); {
		page := must(pager.NextPage(ctx))(t)
		for _, r := range page.Rules {
			rules = append(rules, r.Name)
		}
	}
	if strings.Join(rules, ",") != "big,red" && strings.Join(rules, ",") != "red,big" {
		t.Errorf("rules %v", rules)
	}
	must(c.DeleteRule(ctx, "t", "s", "big", nil))(t)
	must(c.DeleteSubscription(ctx, "t", "s", nil))(t)
	must(c.DeleteTopic(ctx, "t", nil))(t)
	must(c.DeleteQueue(ctx, "q", nil))(t)
	if q := must(c.GetQueue(ctx, "q", nil))(t); q != nil {
		t.Errorf("the deleted queue is %+v", q)
	}
}

// TestTopicsKeepOrderUnlessPartitioned: a topic created without SupportOrdering has it, as in
// azservicebus' recording of a topic; Learn names false as the default of partitioned ones.
func TestTopicsKeepOrderUnlessPartitioned(t *testing.T) {
	srv := startT(t, nil)
	c := adminClient(t, srv, srv.ConnectionString())
	for i, tt := range []struct {
		partitioned, given *bool
		want               bool
	}{
		{nil, nil, true},
		{nil, to.Ptr(false), false},
		{to.Ptr(true), nil, false},
		{to.Ptr(true), to.Ptr(true), true},
	} {
		topic := must(c.CreateTopic(t.Context(), fmt.Sprintf("t%d", i), &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
			EnablePartitioning: tt.partitioned, SupportOrdering: tt.given,
		}}))(t)
		if *topic.SupportOrdering != tt.want {
			t.Errorf("topic %d has SupportOrdering %v, want %v", i, *topic.SupportOrdering, tt.want)
		}
	}
}

// TestAdminNeedsManage: a key without the Manage claim changes nothing.
func TestAdminNeedsManage(t *testing.T) {
	srv := startT(t, &Options{
		Keys:     []SASKey{{Name: "root", Key: "a"}, {Name: "both", Key: "b", Rights: RightSend | RightListen}},
		Topology: &Topology{Queues: []Queue{{Name: "q"}}},
	})
	c := adminClient(t, srv, srv.ConnectionStringFor("both"))
	for name, call := range map[string]func() error{
		"create": func() error { _, err := c.CreateQueue(t.Context(), "x", nil); return err },
		"delete": func() error { _, err := c.DeleteQueue(t.Context(), "q", nil); return err },
		"read":   func() error { _, err := c.GetQueue(t.Context(), "q", nil); return err },
		"list":   func() error { _, err := c.NewListQueuesPager(nil).NextPage(t.Context()); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if q := must(srv.broker.Queue("q"))(t); q.Name != "q" {
		t.Error("the queue is gone")
	}
}

// TestAdminBadRequests: hand-made requests get the service's error document.
func TestAdminBadRequests(t *testing.T) {
	srv := startT(t, queues("q"))
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	do := func(method, path, auth, requestBody string) (int, string) {
		req := must(http.NewRequestWithContext(t.Context(), method, srv.AdminURL()+path, strings.NewReader(requestBody)))(t)
		if auth != "" {
			req.Header.Set("Authorization", auth)
		}
		resp := must(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		return resp.StatusCode, string(must(io.ReadAll(resp.Body))(t))
	}
	token := sign(t, "https://"+srv.host()+"/", time.Now().Add(time.Hour))
	entry := func(content string) string {
		return `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` + content + `</content></entry>`
	}
	for name, c := range map[string]struct {
		method, path, auth, body string
		status                   int
		want                     string
	}{
		"no token":        {"GET", "/q", "", "", 401, "MissingToken"},
		"expired token":   {"GET", "/q", sign(t, "https://h/", time.Now().Add(-time.Hour)), "", 401, "ExpiredToken"},
		"not XML":         {"PUT", "/x", token, "{}", 400, "not XML"},
		"deep XML":        {"PUT", "/x", token, strings.Repeat("<a>", 100), 400, "nested deeper"},
		"no content":      {"PUT", "/x", token, "<entry/>", 400, "not an ATOM entry"},
		"other content":   {"PUT", "/x", token, entry("<What/>"), 400, "neither a QueueDescription"},
		"bad duration":    {"PUT", "/x", token, entry("<QueueDescription><LockDuration>1m</LockDuration></QueueDescription>"), 400, "ISO 8601"},
		"bad number":      {"PUT", "/x", token, entry("<QueueDescription><MaxDeliveryCount>many</MaxDeliveryCount></QueueDescription>"), 400, "not a number"},
		"no deliveries":   {"PUT", "/x", token, entry("<QueueDescription><MaxDeliveryCount>0</MaxDeliveryCount></QueueDescription>"), 400, "must be positive"},
		"no size":         {"PUT", "/x", token, entry("<TopicDescription><MaxSizeInMegabytes>0</MaxSizeInMegabytes></TopicDescription>"), 400, "must be positive"},
		"no lock":         {"PUT", "/x", token, entry("<QueueDescription><LockDuration>PT0S</LockDuration></QueueDescription>"), 400, "must be positive"},
		"no time to live": {"PUT", "/x", token, entry("<TopicDescription><DefaultMessageTimeToLive>PT0S</DefaultMessageTimeToLive></TopicDescription>"), 400, "must be positive"},
		"lock too long":   {"PUT", "/x", token, entry("<QueueDescription><LockDuration>PT6M</LockDuration></QueueDescription>"), 400, "<Detail>"},
		"delete unknown":  {"DELETE", "/x", token, "", 404, "<Code>404</Code>"},
		"unknown method":  {"PATCH", "/q", token, "", 405, "not allowed"},
		"too large":       {"PUT", "/x", token, strings.Repeat("<a></a>", (1<<20)/6), 400, "<Detail>"},
		"unknown is feed": {"GET", "/x", token, "", 200, "Publicly Listed Services"},
	} {
		status, text := do(c.method, c.path, c.auth, c.body)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d and %q", name, status, text, c.status, c.want)
		}
	}
}

func TestHealth(t *testing.T) {
	srv := startT(t, nil)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	get := func() (int, string) {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, srv.AdminURL()+"/health", nil))(t)
		resp := must(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		return resp.StatusCode, string(must(io.ReadAll(resp.Body))(t))
	}
	if status, text := get(); status != 200 || !strings.Contains(text, `"healthy"`) {
		t.Errorf("%d %s", status, text)
	}
	// A broker that accepts no messages is not healthy.
	check(t, srv.SetStatus(t.Context(), healthQueue, StatusSendDisabled))
	if status, text := get(); status != 503 || !strings.Contains(text, "send") {
		t.Errorf("with sends disabled: %d %s", status, text)
	}
	check(t, srv.SetStatus(t.Context(), healthQueue, StatusReceiveDisabled))
	if status, text := get(); status != 503 {
		t.Errorf("with receives disabled: %d %s", status, text)
	}
	// The queue of the health check is not listed.
	c := adminClient(t, srv, srv.ConnectionString())
	if page := must(c.NewListQueuesPager(nil).NextPage(context.Background()))(t); len(page.Queues) != 0 {
		t.Errorf("listed %+v", page.Queues)
	}
}

// An empty list of rules, as generic code passes it, is not a subscription that receives
// nothing.
func TestEmptyRulesMeanTheDefaultRule(t *testing.T) {
	all := Rule{Name: "all", Action: &Action{}} // an empty action is none
	for name, rules := range map[string][]Rule{"nil": nil, "empty": {}, "empty action": {all}} {
		o := &Options{Topology: &Topology{Topics: []Topic{{Name: "t", Subscriptions: []Subscription{{Name: "s", Rules: rules}}}}}}
		bubble(t, o, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
			check(t, srv.Send(ctx, "t", Message{ID: "m"}))
			if got := must(srv.Peek("t/Subscriptions/s", 10))(t); len(got) != 1 {
				t.Errorf("%s: %d messages, want 1", name, len(got))
			}
		})
	}
}

func TestCorrelationFilterRefusesFieldsItDoesNotCompare(t *testing.T) {
	bubble(t, &Options{}, func(t *testing.T, ctx context.Context, srv *Server, _ *azservicebus.Client) {
		check(t, srv.CreateTopic(ctx, Topic{Name: "t"}))
		for _, fields := range []Fields{{PartitionKey: "k"}, {SequenceNumber: 1}, {EnqueuedAt: srv.Now()}} {
			rule := Rule{Name: "r", Filter: Filter{Kind: CorrelationFilter, Correlation: fields}}
			if err := srv.CreateSubscription(ctx, "t", Subscription{Name: "s", Rules: []Rule{rule}}); err == nil {
				t.Errorf("%+v was accepted", fields)
			}
		}
	})
}

// TestSessionsAreNotForwarded: the service refuses ForwardTo of a queue or a subscription with
// sessions; their dead-letter queues have none.
func TestSessionsAreNotForwarded(t *testing.T) {
	ctx := t.Context()
	srv := startT(t, queues("to"))
	c := adminClient(t, srv, srv.ConnectionString())
	must(c.CreateTopic(ctx, "t", nil))(t)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "ForwardTo") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := c.CreateQueue(ctx, "q", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: to.Ptr(true), ForwardTo: to.Ptr("to")}})
	refused("queue", err)
	_, err = c.CreateSubscription(ctx, "t", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{RequiresSession: to.Ptr(true), ForwardTo: to.Ptr("to")}})
	refused("subscription", err)
	q := must(c.CreateQueue(ctx, "q", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{RequiresSession: to.Ptr(true), ForwardDeadLetteredMessagesTo: to.Ptr("to")}}))(t)
	q.ForwardTo = to.Ptr("to")
	_, err = c.UpdateQueue(ctx, "q", q.QueueProperties, nil)
	refused("update", err)
}

// TestFiltersKeepBlanks: blanks around a value or the name of a property are part of it.
func TestFiltersKeepBlanks(t *testing.T) {
	ctx := t.Context()
	srv := startT(t, nil)
	c := adminClient(t, srv, srv.ConnectionString())
	must(c.CreateTopic(ctx, "t", nil))(t)
	for name, filter := range map[string]*admin.CorrelationFilter{
		"subject": {Subject: to.Ptr(" red ")},
		"name":    {ApplicationProperties: map[string]any{" k ": "x"}},
	} {
		must(c.CreateSubscription(ctx, "t", name, &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{DefaultRule: &admin.RuleProperties{Name: "r", Filter: filter}}}))(t)
	}
	check(t, srv.Send(ctx, "t",
		Message{ID: "1", Subject: " red ", Properties: map[string]any{" k ": "x"}}, Message{ID: "2", Subject: "red", Properties: map[string]any{"k": "x"}}))
	for _, name := range []string{"subject", "name"} {
		if got := must(srv.Peek("t/Subscriptions/"+name, 10))(t); len(got) != 1 || got[0].ID != "1" {
			t.Errorf("%s: %d messages, want the first", name, len(got))
		}
	}
}
