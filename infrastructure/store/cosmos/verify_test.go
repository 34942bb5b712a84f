package cosmos_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/store/cosmos"
	"feedbox/infrastructure/store/document"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "no-ttl", PartitionKey: []string{"/partitionKey"}}))
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "short", PartitionKey: []string{"/id"}, DefaultTTL: 60}))
	spec := func(id string) cosmos.ContainerSpec {
		return cosmos.ContainerSpec{ID: id, PartitionKeyPath: cosmos.PartitionKeyPath, TTL: true}
	}
	must(t, cosmos.Verify(t.Context(), w.client, "contacts", spec("data")))

	err := cosmos.Verify(t.Context(), w.client, "contacts", spec("data"), spec("no-ttl"), spec("short"), spec("absent"))
	if err == nil {
		t.Fatal("four faults are accepted")
	}
	for _, want := range []string{
		`"no-ttl" has the default TTL off`, `"short" has the partition key [/id]`, `"short" has the default TTL 60, it needs -1`, `"absent" does not exist`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %s:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), `"data"`) {
		t.Errorf("the error blames the container that is right:\n%v", err)
	}
	if err := cosmos.Verify(t.Context(), w.client, "elsewhere", spec("data")); err == nil || !strings.Contains(err.Error(), `database "elsewhere" does not exist`) {
		t.Errorf("a missing database: %v", err)
	}
}

// Documents without a TTL must not expire, otherwise parked events and leases are lost.
func TestVerifyRefusesADefaultTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for id, ttl := range map[string]int{"off": 0, "on": -1, "hour": 3600} {
		must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: id, PartitionKey: []string{"/partitionKey"}, DefaultTTL: ttl}))
		err := cosmos.Verify(t.Context(), w.client, "contacts", cosmos.ContainerSpec{ID: id, PartitionKeyPath: cosmos.PartitionKeyPath})
		const want = `the container "hour" has the default TTL 3600, after which its documents would expire: az cosmosdb sql container update --name hour --ttl -1`
		if ttl > 0 && (err == nil || err.Error() != want) || ttl <= 0 && err != nil {
			t.Errorf("default TTL %d: %v", ttl, err)
		}
	}
}

func TestVerifyReportsAnUnavailableAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.Close())
	err := cosmos.Verify(t.Context(), w.client, "contacts")
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v; want unavailable", err)
	}
}

func TestNewClientReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: "ftp://x"})
	if err == nil || !strings.Contains(err.Error(), "endpoint") || !strings.Contains(err.Error(), "credential") {
		t.Errorf("error %v", err)
	}
	for _, endpoint := range []string{"", "x", "https://", "://", "http://a b/"} {
		if _, err := cosmos.NewClient(cosmos.ClientConfig{Endpoint: endpoint, Key: "a2V5"}); err == nil || !strings.Contains(err.Error(), "is not an http(s) URL") {
			t.Errorf("endpoint %q: %v", endpoint, err)
		}
	}
	_, err = cosmos.NewClient(cosmos.ClientConfig{Endpoint: "http://x", Key: "secret!"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v; want one that does not show the key", err)
	}
}

func TestRelayContainers(t *testing.T) {
	t.Parallel()
	want := []cosmos.ContainerSpec{
		{ID: "data", PartitionKeyPath: "/tenant", TTL: true}, {ID: "leases", PartitionKeyPath: "/id"}, {ID: "parked", PartitionKeyPath: "/partitionKey"},
	}
	if got := cosmos.RelayContainers(document.EventContract{Key: "tenant"}, "data", "leases", "parked"); !slices.Equal(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got, want := cosmos.DataContainer("d"), (cosmos.ContainerSpec{ID: "d", PartitionKeyPath: "/partitionKey", TTL: true}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// A refused read of a container is not a missing container.
func TestVerifyReportsMissingRights(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"/dbs/contacts", "/dbs/contacts/colls/data"} {
		emulator := cosmosemu.StartT(t, nil)
		must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}))
		client, err := cosmos.NewClient(cosmos.ClientConfig{
			Endpoint: emulator.Endpoint(), Key: emulator.Key(), Options: azcore.ClientOptions{Transport: movedAt{emulator.HTTPClient(), at}},
		})
		must(t, err)
		t.Cleanup(client.Close)
		if err := cosmos.Verify(t.Context(), client, "contacts", cosmos.DataContainer("data")); !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "create it") {
			t.Errorf("%s: %v; want unavailable", at, err)
		}
	}
}

// movedAt answers requests of one path with 410.
type movedAt struct {
	next *http.Client
	path string
}

// Do implements policy.Transporter.
func (m movedAt) Do(r *http.Request) (*http.Response, error) {
	if strings.TrimSuffix(r.URL.Path, "/") == m.path {
		return moved(r, nil)
	}
	return m.next.Do(r)
}
