package doctor

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

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/process/config"
	"feedbox/infrastructure/store/cosmos"
)

// identity hands out a token that names a principal.
type identity struct{}

func (identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"oid":"11111111-2222-3333-4444-555555555555"}`))
	return azcore.AccessToken{Token: "e30." + claims + ".sig", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// account answers like a Cosmos DB account that refuses the requests that forbid selects.
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

func newDoctor(t *testing.T, a account) *Doctor {
	t.Helper()
	cfg := testConfig(t).Cosmos
	o := Options{Clock: &Clock{}, Account: &cosmos.Account{}, Identity: identity{}}
	options := azcore.ClientOptions{Transport: a, PerCallPolicies: []policy.Policy{o.Clock, o.Account}}
	var err error
	if o.Client, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: string(cfg.Endpoint), Credential: identity{}, Options: options}); err != nil {
		t.Fatal(err)
	}
	return New(cfg, o)
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
	d := newDoctor(t, account{forbid: func(path string) bool { return strings.Contains(path, "dbs") }, date: time.Now()})
	found := d.examineContainers(t.Context(), operator.ProcessRelay)
	if len(found) != 3 || found[0].Status != operator.FindingFailed {
		t.Fatalf("%+v, want a failure of each container", found)
	}
	for _, f := range found[1:] {
		if f.Status != operator.FindingFailed || f.Next != "see container data" {
			t.Errorf("%+v, want a failure that refers to the first one", f)
		}
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
	for _, f := range d.examineContacts(t.Context()) {
		got = append(got, f.Next)
	}
	refused := cosmos.Verify(t.Context(), d.Client, "contacts", cosmos.DataContainer("data"))
	for _, part := range []operator.Part{operator.PartFeed, operator.PartLeases, operator.PartParked} {
		got = append(got, d.Advise(t.Context(), refused, part))
	}
	if wanted := []string{
		fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox API", 2, "Contributor"),
		fmt.Sprintf(line, "/dbs/contacts/colls/data", "Feedbox change feed reader", 1, "Reader"),
		fmt.Sprintf(line, "/dbs/contacts/colls/leases", "Feedbox bookkeeper", 2, "Contributor"),
		fmt.Sprintf(line, "/dbs/contacts/colls/parked", "Feedbox parking", 2, "Contributor"),
	}; !slices.Equal(got, wanted) {
		t.Errorf("%q\nwant\n%q", got, wanted)
	}
}

func TestClock(t *testing.T) {
	for off, want := range map[time.Duration]operator.FindingStatus{0: operator.FindingOK, time.Minute: operator.FindingWarning, -time.Minute: operator.FindingWarning, time.Hour: operator.FindingFailed} {
		d := newDoctor(t, account{forbid: func(string) bool { return true }, date: time.Now().Add(off)})
		if f := d.Clock.examine(t.Context())[0]; f.Status != operator.FindingUnknown {
			t.Errorf("before any reply: %+v", f)
		}
		d.examineContainers(t.Context(), operator.ProcessRelay)
		if f := d.Clock.examine(t.Context())[0]; f.Status != want {
			t.Errorf("%s off: %+v, want %s", off, f, want)
		}
	}
}
