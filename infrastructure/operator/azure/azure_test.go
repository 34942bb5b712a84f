package azure

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

// identity hands out a token that names a principal.
type identity struct{}

func (identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"oid":"11111111-2222-3333-4444-555555555555"}`))
	return azcore.AccessToken{Token: "e30." + claims + ".sig", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// account answers as a Cosmos DB account that refuses what forbid says.
type account struct {
	forbid func(path string) bool
	date   time.Time
}

func (a account) Do(r *http.Request) (*http.Response, error) {
	code, body := http.StatusOK, `{"id":"x"}`
	switch path := r.URL.Path; {
	case path == "/" || path == "":
		body = `{"id":"contoso","writableLocations":[],"readableLocations":[]}`
	case a.forbid(path):
		code, body = http.StatusForbidden, `{"code":"Forbidden","message":"Request blocked by Auth contoso"}`
	}
	return &http.Response{
		StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Date": {a.date.UTC().Format(http.TimeFormat)}, "Content-Type": {"application/json"}},
	}, nil
}

func newDoctor(t *testing.T, a account) *storeDoctor {
	t.Helper()
	cfg := testConfig(t)
	clients := StoreClients{Clock: &Clock{}, Account: &cosmos.Account{}, Identity: identity{}}
	options := azcore.ClientOptions{Transport: a, PerCallPolicies: []policy.Policy{clients.Clock, clients.Account}}
	var err error
	if clients.Cosmos, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: cfg.Cosmos.Endpoint, Credential: identity{}, Options: options}); err != nil {
		t.Fatal(err)
	}
	store, err := Store(cfg.Cosmos, document.EventContract{}, clients)
	if err != nil {
		t.Fatal(err)
	}
	return store.Doctor.(*storeDoctor)
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

func TestRefusedIdentityGetsTheExactLine(t *testing.T) {
	o := newDoctor(t, account{forbid: func(path string) bool { return strings.Contains(path, "dbs") }, date: time.Now()})
	found := o.examineContainers(t.Context(), operator.ProcessRelay)
	if len(found) != 1 || found[0].Status != operator.FindingFailed {
		t.Fatalf("%+v, want one failure that stands for all", found)
	}
	const line = `az cosmosdb sql role assignment create --resource-group <resource-group> --account-name contoso --scope %q --principal-id 11111111-2222-3333-4444-555555555555 --role-definition-name %q
That role comes with bicep/modules/roles.bicep. In an account without it, put --role-definition-id 00000000-0000-0000-0000-00000000000%d in place of the name: Cosmos DB Built-in Data %s, which allows more.`
	want := fmt.Sprintf(line, "/", "Feedbox metadata reader", 1, "Reader")
	if found[0].Next != want {
		t.Errorf("next\n%s\nwant\n%s", found[0].Next, want)
	}
	if !strings.Contains(found[0].Detail, "status 403") {
		t.Errorf("detail %q", found[0].Detail)
	}
	var got []string
	for _, f := range o.examineContacts(t.Context()) {
		got = append(got, f.Next)
	}
	refused := cosmos.Verify(t.Context(), o.clients.Cosmos, "contacts", cosmos.DataContainer("data"))
	for _, part := range []operator.Part{operator.PartFeed, operator.PartLeases, operator.PartParked} {
		got = append(got, o.Advise(t.Context(), refused, part))
	}
	if wanted := []string{
		fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox API", 2, "Contributor"),
		fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox change feed reader", 1, "Reader"),
		fmt.Sprintf(line, "/dbs/contacts/colls/leases", "Feedbox bookkeeper", 2, "Contributor"),
		fmt.Sprintf(line, "/dbs/contacts/colls/parked", "Feedbox parking", 2, "Contributor"),
	}; !slices.Equal(got, wanted) {
		t.Errorf("%q\nwant\n%q", got, wanted)
	}
	want = `az role assignment create --role "Azure Service Bus Data Sender" --assignee-object-id 11111111-2222-3333-4444-555555555555 --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/events/topics/contacts`
	b := Broker(testConfig(t).ServiceBus, BrokerClients{Identity: identity{}}).(*broker)
	if got := b.advice(t.Context(), busSender, "contacts"); got != want {
		t.Errorf("topic\n%s\nwant\n%s", got, want)
	}
}

func TestClock(t *testing.T) {
	for off, want := range map[time.Duration]operator.FindingStatus{0: operator.FindingOK, time.Minute: operator.FindingWarning, -time.Minute: operator.FindingWarning, time.Hour: operator.FindingFailed} {
		o := newDoctor(t, account{forbid: func(string) bool { return true }, date: time.Now().Add(off)})
		if f := o.clients.Clock.examine(t.Context())[0]; f.Status != operator.FindingUnknown {
			t.Errorf("before any reply: %+v", f)
		}
		o.examineContainers(t.Context(), operator.ProcessRelay)
		if f := o.clients.Clock.examine(t.Context())[0]; f.Status != want {
			t.Errorf("%s off: %+v, want %s", off, f, want)
		}
	}
}

func TestJudgeTopic(t *testing.T) {
	b := &broker{}
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
		for _, f := range b.judgeTopic(c.topic, 30*time.Second) {
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

func TestISODuration(t *testing.T) {
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

// The window is the topic's own where the management API tells it.
func TestTheDuplicateWindowIsTheTopics(t *testing.T) {
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
	b := Broker(cfg.ServiceBus, BrokerClients{})
	for text, want := range map[string]operator.Window{
		"": {Length: 10 * time.Minute, Assumed: true},
		"<RequiresDuplicateDetection>true</RequiresDuplicateDetection><DuplicateDetectionHistoryTimeWindow>PT1H</DuplicateDetectionHistoryTimeWindow>": {Length: time.Hour},
		"<RequiresDuplicateDetection>false</RequiresDuplicateDetection>":                                                                               {},
	} {
		settings = text
		if got := b.Window(t.Context(), management.URL); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
