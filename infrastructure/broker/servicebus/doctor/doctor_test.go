package doctor

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
)

// identity returns a token that contains a principal.
type identity struct{}

func (identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"oid":"11111111-2222-3333-4444-555555555555"}`))
	return azcore.AccessToken{Token: "e30." + claims + ".sig", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func testConfig(t *testing.T) *config.Relay {
	t.Helper()
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/", "FEEDBOX_SERVICEBUS_NAMESPACE=events.servicebus.windows.net",
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestAdviceIsACompleteCommand(t *testing.T) {
	want := `az role assignment create --role "Azure Service Bus Data Sender" --assignee-object-id 11111111-2222-3333-4444-555555555555 --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/events/topics/contacts`
	d := New(testConfig(t).ServiceBus, nil, identity{})
	if got := d.advice(t.Context(), busSender, "contacts"); got != want {
		t.Errorf("topic\n%s\nwant\n%s", got, want)
	}
}

func TestTopicSettingsAreChecked(t *testing.T) {
	d := &Doctor{}
	yes, no, short, long := true, false, "PT20S", "PT10M"
	disabled := admin.EntityStatusDisabled
	for name, c := range map[string]struct {
		topic admin.TopicProperties
		want  []operator.FindingStatus
	}{
		"good":      {admin.TopicProperties{RequiresDuplicateDetection: &yes, DuplicateDetectionHistoryTimeWindow: &long}, []operator.FindingStatus{operator.FindingOK}},
		"off":       {admin.TopicProperties{RequiresDuplicateDetection: &no}, []operator.FindingStatus{operator.FindingFailed}},
		"too short": {admin.TopicProperties{RequiresDuplicateDetection: &yes, DuplicateDetectionHistoryTimeWindow: &short}, []operator.FindingStatus{operator.FindingWarning}},
		"disabled":  {admin.TopicProperties{RequiresDuplicateDetection: &yes, Status: &disabled}, []operator.FindingStatus{operator.FindingFailed, operator.FindingOK}},
		"parted":    {admin.TopicProperties{RequiresDuplicateDetection: &yes, EnablePartitioning: &yes}, []operator.FindingStatus{operator.FindingOK, operator.FindingOK}},
	} {
		var got []operator.FindingStatus
		for _, f := range d.judgeTopic(c.topic, 30*time.Second) {
			got = append(got, f.Status)
			if f.Status != operator.FindingOK && f.Next == "" {
				t.Errorf("%s: %+v does not say what to do", name, f)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestParseISODuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT10M": 10 * time.Minute, "P7D": 7 * 24 * time.Hour, "P1DT2H3M4S": 26*time.Hour + 3*time.Minute + 4*time.Second, "PT20.5S": 20 * time.Second, "PT0S": 0,
	} {
		if got, ok := parseISODuration(text); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "10M", "PT", "P1M", "PT99999999999999999999S", "PT-1S"} {
		if got, ok := parseISODuration(text); ok && got != 0 {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// The default is only assumed without a response of the management API.
func TestWindowIsReadFromTheManagementAPI(t *testing.T) {
	var settings string
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if settings == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `<entry xmlns="http://www.w3.org/2005/Atom"><title>contacts</title><content type="application/xml">`+
			`<TopicDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">%s</TopicDescription></content></entry>`, settings)
	}))
	defer management.Close()
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://events.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=a2V5",
	})
	if err != nil {
		t.Fatal(err)
	}
	d := New(cfg.ServiceBus, nil, nil)
	for text, want := range map[string]operator.Window{
		"": {Length: 10 * time.Minute, Assumed: true},
		"<RequiresDuplicateDetection>true</RequiresDuplicateDetection><DuplicateDetectionHistoryTimeWindow>PT1H</DuplicateDetectionHistoryTimeWindow>": {Length: time.Hour},
		"<RequiresDuplicateDetection>false</RequiresDuplicateDetection>":                                                                               {},
	} {
		settings = text
		if got := d.Window(t.Context(), management.URL); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// Each namespace examines its own shards, and the default one also the topics by action. A namespace without
// topics of events is not examined.
func TestNamespacesExamineTheirShards(t *testing.T) {
	shared := config.ServiceBus{Namespace: "a.example", Topic: "all", Topics: []string{"X=audit"}, Shards: []string{"e1", "e0", "e2@b.example"}}
	all := Namespaces{}
	for _, name := range []string{"", "b.example", "c.example"} {
		all.Add(name, New(shared.In(name), nil, nil))
	}
	if len(all) != 2 || !slices.Equal(all[""].topics(), []string{"e1", "e0", "audit"}) || !slices.Equal(all["b.example"].topics(), []string{"e2"}) || all["b.example"].host() != "b.example" {
		t.Errorf("namespaces %+v", all)
	}
	single := New(config.ServiceBus{Namespace: "a.example", Topic: "all", Topics: []string{"X=all", "Y=audit"}}.In(""), nil, nil)
	if got := single.topics(); !slices.Equal(got, []string{"all", "audit"}) {
		t.Errorf("topics without shards: %v", got)
	}
}

// The subscriptions of a shard carry the name of its topic, as dead letters are addressed.
func TestConsumersOfShardsAreNamedByTopic(t *testing.T) {
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/e0/Subscriptions/" && r.URL.Path != "/e0/Subscriptions" {
			t.Errorf("asked for %s", r.URL)
		}
		if r.URL.Query().Get("$skip") > "0" {
			_, _ = fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"></feed>`)
			return
		}
		_, _ = fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>billing</title><content type="application/xml">`+
			`<SubscriptionDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"></SubscriptionDescription></content></entry></feed>`)
	}))
	defer management.Close()
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/", "FEEDBOX_SERVICEBUS_SHARDS=e0",
		"FEEDBOX_SERVICEBUS_CONNECTION_STRING=Endpoint=sb://events.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=a2V5",
	})
	if err != nil {
		t.Fatal(err)
	}
	all := Namespaces{}
	all.Add("", New(cfg.ServiceBus.In(""), nil, nil))
	if got, err := all.Consumers(t.Context(), management.URL); err != nil || !slices.Equal(got, []string{"e0/billing"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// A topic accepts events for a subscription that delivers none.
func TestDisabledSubscriptionIsReported(t *testing.T) {
	var status string
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom">`)
		if r.URL.Query().Get("$skip") == "0" || r.URL.Query().Get("$skip") == "" {
			_, _ = fmt.Fprintf(w, `<entry><title>billing</title><content type="application/xml"><SubscriptionDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">`+
				`<RequiresSession>true</RequiresSession><Status>%s</Status></SubscriptionDescription></content></entry>`, status)
		}
		_, _ = fmt.Fprint(w, `</feed>`)
	}))
	defer management.Close()
	var cfg config.ServiceBus
	if err := cfg.ConnectionString.UnmarshalText([]byte("Endpoint=sb://events.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=a2V5")); err != nil {
		t.Fatal(err)
	}
	d := New(cfg, nil, nil)
	client, err := d.adminClient(management.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status string
		want   operator.FindingStatus
	}{{"Active", operator.FindingOK}, {"ReceiveDisabled", operator.FindingWarning}, {"Disabled", operator.FindingWarning}} {
		status = c.status
		found := d.examineSubscriptions(t.Context(), client, "contacts")
		if len(found) != 1 || found[0].Status != c.want || (found[0].Next != "") != (c.want == operator.FindingWarning) {
			t.Errorf("%s: %+v, want %s", c.status, found, c.want)
		}
	}
}
