package operator

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"feedbox/changefeed"
	"feedbox/infrastructure/config"
	"feedbox/infrastructure/cosmos"
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

func newTestOperator(t *testing.T, a account) *Operator {
	t.Helper()
	cfg, err := config.LoadRelay([]string{
		"FEEDBOX_COSMOS_ENDPOINT=https://contoso.documents.azure.com:443/", "FEEDBOX_SERVICEBUS_NAMESPACE=events.servicebus.windows.net",
	})
	if err != nil {
		t.Fatal(err)
	}
	clients := Clients{Clock: &Clock{}, Account: &cosmos.Account{}, Identity: identity{}}
	options := azcore.ClientOptions{Transport: a, PerCallPolicies: []policy.Policy{clients.Clock, clients.Account}}
	if clients.Cosmos, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: cfg.Cosmos.Endpoint, Credential: identity{}, Options: options}); err != nil {
		t.Fatal(err)
	}
	o, err := New(cfg, clients)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRefusedIdentityGetsTheExactLine(t *testing.T) {
	o := newTestOperator(t, account{forbid: func(path string) bool { return strings.Contains(path, "dbs") }, date: time.Now()})
	found := o.examineContainers(t.Context(), ProcessRelay)
	if len(found) != 1 || found[0].Status != FindingFailed {
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
	for process, wanted := range map[Process][]string{
		ProcessAPI: {fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox API", 2, "Contributor")},
		ProcessRelay: {
			fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox change feed reader", 1, "Reader"),
			fmt.Sprintf(line, "/dbs/contacts/colls/leases", "Feedbox bookkeeper", 2, "Contributor"),
			fmt.Sprintf(line, "/dbs/contacts/colls/parked", "Feedbox parking", 2, "Contributor"),
		},
	} {
		var got []string
		for _, f := range o.examineAccess(t.Context(), process) {
			got = append(got, f.Next)
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("%s\n%q\nwant\n%q", process, got, wanted)
		}
	}
	want = `az role assignment create --role "Azure Service Bus Data Sender" --assignee-object-id 11111111-2222-3333-4444-555555555555 --assignee-principal-type ServicePrincipal --scope /subscriptions/<subscription>/resourceGroups/<resource-group>/providers/Microsoft.ServiceBus/namespaces/events/topics/contacts`
	if got := o.busAdvice(t.Context(), busSender, "contacts"); got != want {
		t.Errorf("topic\n%s\nwant\n%s", got, want)
	}
}

func TestClock(t *testing.T) {
	for off, want := range map[time.Duration]FindingStatus{0: FindingOK, time.Minute: FindingWarning, -time.Minute: FindingWarning, time.Hour: FindingFailed} {
		o := newTestOperator(t, account{forbid: func(string) bool { return true }, date: time.Now().Add(off)})
		if f := o.examineClock(t.Context())[0]; f.Status != FindingUnknown {
			t.Errorf("before any reply: %+v", f)
		}
		o.examineContainers(t.Context(), ProcessRelay)
		if f := o.examineClock(t.Context())[0]; f.Status != want {
			t.Errorf("%s off: %+v, want %s", off, f, want)
		}
	}
}

func TestJudgeTopic(t *testing.T) {
	o := newTestOperator(t, account{})
	yes, no, short, long := true, false, "PT20S", "PT10M"
	disabled := admin.EntityStatusDisabled
	for name, c := range map[string]struct {
		topic admin.TopicProperties
		want  []FindingStatus
	}{
		"good":      {admin.TopicProperties{RequiresDuplicateDetection: &yes, DuplicateDetectionHistoryTimeWindow: &long}, []FindingStatus{FindingOK}},
		"off":       {admin.TopicProperties{RequiresDuplicateDetection: &no}, []FindingStatus{FindingFailed}},
		"too short": {admin.TopicProperties{RequiresDuplicateDetection: &yes, DuplicateDetectionHistoryTimeWindow: &short}, []FindingStatus{FindingWarning}},
		"disabled":  {admin.TopicProperties{RequiresDuplicateDetection: &yes, Status: &disabled}, []FindingStatus{FindingFailed, FindingOK}},
		"parted":    {admin.TopicProperties{RequiresDuplicateDetection: &yes, EnablePartitioning: &yes}, []FindingStatus{FindingOK, FindingOK}},
	} {
		var got []FindingStatus
		for _, f := range o.judgeTopic(c.topic) {
			got = append(got, f.Status)
			if f.Status != FindingOK && f.Next == "" {
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

func TestUncovered(t *testing.T) {
	lease := func(from, to string) changefeed.Lease {
		return changefeed.Lease{Range: changefeed.FeedRange{Min: from, Max: to}}
	}
	for name, c := range map[string]struct {
		leases []changefeed.Lease
		want   []string
	}{
		"none yet":        {nil, nil},
		"whole":           {[]changefeed.Lease{lease("", "FF")}, nil},
		"two":             {[]changefeed.Lease{lease("", "1F"), lease("1F", "FF")}, nil},
		"two spellings":   {[]changefeed.Lease{lease("", "1F"), lease("1F00", "FF")}, nil},
		"hole":            {[]changefeed.Lease{lease("", "1F"), lease("2F", "FF")}, []string{"1F-2F"}},
		"ends":            {[]changefeed.Lease{lease("1F", "2F")}, []string{"-1F", "2F-FF"}},
		"parent in split": {[]changefeed.Lease{lease("", "FF"), lease("", "1F"), lease("1F", "FF")}, nil},
	} {
		if got := Uncovered(c.leases); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
