package cosmos_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
)

func TestVerifyAccount(t *testing.T) {
	t.Parallel()
	for level, wanted := range map[string]bool{
		"Strong": true, "BoundedStaleness": true, "Session": true, "ConsistentPrefix": false, "Eventual": false,
	} {
		emulator := cosmosemu.StartT(t, &cosmosemu.Options{Consistency: level})
		must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}))
		account := connect(t, emulator, emulator.HTTPClient())
		if got := account.Level(); got != level {
			t.Errorf("level %q, want %q", got, level)
		}
		err := account.Verify()
		if (err == nil) != wanted || err != nil && !strings.Contains(err.Error(), level+", it needs Session or stronger") {
			t.Errorf("%s: %v", level, err)
		}
	}
}

func TestVerifyAccountWithSeveralWriteRegions(t *testing.T) {
	t.Parallel()
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{})
	must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}))
	account := connect(t, emulator, manyWriters{emulator.HTTPClient()})
	if err := account.Verify(); err == nil || !strings.Contains(err.Error(), "several regions") {
		t.Errorf("%v, want a refusal", err)
	}
	if err := (&cosmos.Account{}).Verify(); err != nil {
		t.Errorf("nothing known: %v", err)
	}
}

// connect makes the first requests of a client.
func connect(t *testing.T, emulator *cosmosemu.Server, transport policy.Transporter) *cosmos.Account {
	t.Helper()
	account := &cosmos.Account{}
	c := cosmos.ClientConfig{Endpoint: emulator.Endpoint(), Key: emulator.Key()}
	c.Options.Transport = transport
	c.Options.PerCallPolicies = []policy.Policy{account}
	client, err := cosmos.NewClient(c)
	must(t, err)
	must(t, cosmos.Verify(t.Context(), client, "contacts", cosmos.ContainerSpec{ID: "data", PartitionKeyPath: cosmos.PartitionKeyPath, TTL: true}))
	return account
}

// manyWriters makes the account report several write regions.
type manyWriters struct{ next policy.Transporter }

func (m manyWriters) Do(req *http.Request) (*http.Response, error) {
	resp, err := m.next.Do(req)
	if err != nil || req.URL.Path != "/" {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	text := strings.Replace(string(body), `"enableMultipleWriteLocations":false`, `"enableMultipleWriteLocations":true`, 1)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return resp, err
}
