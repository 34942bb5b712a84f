package wiring

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/process/config"
)

// twoRegions answers like an account with one write region and two read regions.
type twoRegions struct {
	mu   sync.Mutex // guards read
	read []string   // hosts of the read requests
}

func (a *twoRegions) Do(r *http.Request) (*http.Response, error) {
	status, body := http.StatusNotFound, `{}`
	if r.URL.Path == "/" || r.URL.Path == "" {
		status, body = http.StatusOK, `{"id":"a","writableLocations":[{"name":"East","databaseAccountEndpoint":"https://a-east.example:443/"}],`+
			`"readableLocations":[{"name":"East","databaseAccountEndpoint":"https://a-east.example:443/"},{"name":"West","databaseAccountEndpoint":"https://a-west.example:443/"}]}`
	} else {
		a.mu.Lock()
		a.read = append(a.read, r.URL.Hostname())
		a.mu.Unlock()
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// The client of both processes reads from the preferred region.
func TestReadsGoToThePreferredRegion(t *testing.T) {
	for regions, want := range map[string]string{"": "a-east.example", "West": "a-west.example", "Nowhere, West ,East": "a-west.example", "East,West": "a-east.example"} {
		cfg, err := config.LoadAPI([]string{
			"FEEDBOX_COSMOS_ENDPOINT=https://a.example", "FEEDBOX_COSMOS_KEY=" + base64.StdEncoding.EncodeToString([]byte("key")),
			"FEEDBOX_COSMOS_PREFERRED_REGIONS=" + regions,
		})
		if err != nil {
			t.Fatal(err)
		}
		account := &twoRegions{}
		client, err := Params{CosmosTransport: account}.cosmosClient(cfg.Cosmos, tracing.Provider{})
		if err != nil {
			t.Fatal(err)
		}
		container, err := client.NewContainer("contacts", "data")
		if err != nil {
			t.Fatal(err)
		}
		_, err = container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("k"), "x", nil)
		if err == nil || len(account.read) == 0 || account.read[len(account.read)-1] != want {
			t.Errorf("%q: read from %q, want %s (%v)", regions, account.read, want, err)
		}
		client.Close()
	}
}
