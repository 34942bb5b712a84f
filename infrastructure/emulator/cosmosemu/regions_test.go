package cosmosemu_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

// regionClient prefers the second region.
func regionClient(t *testing.T, srv *cosmosemu.Server) *azcosmos.ContainerClient {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), cred, &azcosmos.ClientOptions{
		PreferredRegions: []string{"East US", "West US"}, ClientOptions: azcore.ClientOptions{Transport: srv.HTTPClient()},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRegions(t *testing.T) {
	for _, multi := range []bool{false, true} {
		srv := cosmosemu.StartT(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}, MultipleWriteRegions: multi})
		if err := srv.CreateContainer("db", cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/pk"}}); err != nil {
			t.Fatal(err)
		}
		var here, there atomic.Int32
		count := func(n *atomic.Int32) cosmosemu.Hook {
			return func(*cosmosemu.Call) *cosmosemu.Fault { n.Add(1); return nil }
		}
		srv.Control(cosmosemu.OpUpsertItem, cosmosemu.When(cosmosemu.Call{Region: "West US"}, count(&here)))
		srv.Control(cosmosemu.OpReadItem, cosmosemu.When(cosmosemu.Call{Region: "East US"}, count(&there)))
		c := regionClient(t, srv)
		create(t, c, "1", "a")
		if _, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("a"), "1", nil); err != nil {
			t.Errorf("read in the preferred region: %v", err)
		}
		if there.Load() != 1 || !multi && here.Load() != 1 {
			t.Errorf("several write regions %t: %d writes in West US, %d reads in East US", multi, here.Load(), there.Load())
		}
		far, err := url.Parse(srv.RegionEndpoint("East US"))
		if err != nil || far.Host == srv.Addr() || srv.RegionEndpoint("Mars") != "" {
			t.Fatalf("East US is at %v, %v", far, err)
		}
		r := sendTo(t, srv, srv.RegionEndpoint("East US"), http.MethodPost, "dbs/db/colls/c/docs", `{"id":"2","pk":"a"}`, inA)
		if want := map[bool]string{false: "403 3", true: "201 "}[multi]; want != statusOf(r) {
			t.Errorf("several write regions %t: a write in East US: %s, want %s", multi, statusOf(r), want)
		}
	}
}

func TestRegionsInTheAccount(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Regions: []string{"West US", "East US"}})
	for _, endpoint := range []string{srv.Endpoint(), srv.RegionEndpoint("East US")} {
		var account struct {
			Writable []struct{ Name, DatabaseAccountEndpoint string } `json:"writableLocations"`
			Readable []struct{ Name, DatabaseAccountEndpoint string } `json:"readableLocations"`
		}
		r := sendTo(t, srv, endpoint, http.MethodGet, "", "", nil)
		if err := json.Unmarshal([]byte(r.Body), &account); err != nil || len(account.Writable) != 1 || len(account.Readable) != 2 {
			t.Fatalf("%v %s", err, r.Body)
		}
		if account.Writable[0].DatabaseAccountEndpoint != srv.Endpoint() || account.Readable[1].DatabaseAccountEndpoint != srv.RegionEndpoint("East US") {
			t.Errorf("asked at %s: %s", endpoint, r.Body)
		}
	}
	if _, err := cosmosemu.Start(&cosmosemu.Options{Regions: []string{"a", "a"}}); err == nil {
		t.Error("two regions of one name were taken")
	}
}
