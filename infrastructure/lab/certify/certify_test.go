package certify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/infrastructure/lab/verify"
	"feedbox/infrastructure/lab/wire"
)

// An error text of the service may quote an address or a token.
func TestReportMasksSecretsAndHosts(t *testing.T) {
	const key, host = `a+b/c"d==`, "contoso.documents.azure.com"
	r := newReport(&Options{})
	r.Scripts = []wire.Outcome{{Script: "cosmos/item-etags", Verdict: wire.NotReached, Details: []string{"Get https://" + host + ":443/?sig=a%2Bb%2Fc%22d%3D%3D: bad key " + key}}}
	r.Ended = "key " + key
	r.finish(&Options{Scripted: NewMeter(nil), Served: NewMeter(nil)})
	files, err := r.Write(t.TempDir(), []string{key, ""}, []string{"https://" + host + ":443/", ""})
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{key, `a+b/c`, "a%2Bb", "a&#43;b", host} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s contains %s", file, secret)
			}
		}
		if !bytes.Contains(text, []byte("bad key ********")) || !bytes.Contains(text, []byte("https://HOST")) {
			t.Errorf("%s lost the rest of the error", file)
		}
	}
}

// Each wall-clock hour that a run touches is charged.
func TestRunEndsBeforeItsBudget(t *testing.T) {
	o := &Options{Duration: 30 * time.Minute, Rate: 10, Price: ListPrice, Budget: 5}
	took, cost := o.Estimate()
	if took != 66*time.Minute || cost < 2*(0.08+0.0135) || cost > 0.4 {
		t.Errorf("%v, $%.2f", took, cost)
	}
	limit := o.affordable()
	if at, over := o.cost(limit), o.cost(limit+time.Second); at > o.Budget || over <= o.Budget {
		t.Errorf("a run of %v costs $%.3f, of a second more $%.3f", limit, at, over)
	}
	o.Splits = true
	if _, cost := o.Estimate(); cost < 4*130*ListPrice {
		t.Errorf("with splits: $%.2f", cost)
	}
	o.Budget = 0.01
	if limit := o.affordable(); limit != 0 {
		t.Errorf("a run of %v for $0.01", limit)
	}
}

// An account that refuses every change breaks no promise, and proves none.
func TestLoadWithoutAnAcknowledgedChangeIsNotGood(t *testing.T) {
	good := verify.Run{
		Acked: map[string]int{"a": 1}, Aggregates: []verify.Aggregate{{ID: "a", Version: 1, Sequence: 1}},
		Events: []verify.Event{{ID: "e", Key: "a", Action: "Created", Version: 1, Sequence: 1}}, Messages: []verify.Message{{ID: "e", Session: "a", Subject: "Created", Version: 1, Sequence: 1}},
	}
	for name, c := range map[string]struct {
		run  verify.Run
		good bool
	}{
		"acknowledged": {good, true}, "all refused": {verify.Run{Acked: map[string]int{}}, false}, "all without a reply": {verify.Run{Acked: map[string]int{}, LostCreates: 9}, false},
	} {
		r := Report{Complete: true, Promises: verify.Judge(c.run, true)}
		if r.Good() != c.good || c.good == (len(r.Promises.Breaches) > 0) {
			t.Errorf("%s: good is %t, %q", name, r.Good(), r.Promises.Breaches)
		}
	}
}

type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(req *http.Request) (*http.Response, error) { return f(req) }

func TestMergeIsRequestedFromResourceManager(t *testing.T) {
	const account = "/subscriptions/s/resourceGroups/g/providers/Microsoft.DocumentDB/databaseAccounts/a"
	status := http.StatusAccepted
	merge := Merger(token{}, account, &policy.ClientOptions{Transport: transport(func(req *http.Request) (*http.Response, error) {
		var body map[string]any
		err := json.NewDecoder(req.Body).Decode(&body)
		want := "https://management.azure.com" + account + "/sqlDatabases/d/containers/c/partitionMerge?api-version=2026-04-01-preview"
		if req.URL.String() != want || req.Method != http.MethodPost || req.Header.Get("Authorization") != "Bearer t" || err != nil || body["isDryRun"] != false {
			t.Errorf("%s %s, %v, %v", req.Method, req.URL, body, err)
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}")), Header: http.Header{}, Request: req}, nil
	})})
	if err := merge(t.Context(), "d", "c"); err != nil {
		t.Error(err)
	}
	status = http.StatusForbidden
	if err := merge(t.Context(), "d", "c"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a refusal: %v", err)
	}
}
