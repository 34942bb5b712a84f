package cosmos_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/google/uuid"

	"feedbox/application/contacts"
	"feedbox/application/mediator"
	"feedbox/application/query"
	"feedbox/domain/fault"
	"feedbox/infrastructure/emulator/cosmosemu"
	"feedbox/infrastructure/emulator/pipenet"
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

// A reader of any container starts without the account, but not without the container.
func TestVerifyNamesRefusesOnlyMissingContainers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	must(t, w.emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "short", PartitionKey: []string{"/other"}, DefaultTTL: 60}))
	must(t, cosmos.VerifyNames(t.Context(), w.client, "contacts", "data", "short"))
	if err := cosmos.VerifyNames(t.Context(), w.client, "contacts", "data", "absent"); err == nil || err.Error() != `the container "absent" does not exist in the database "contacts": create it, or correct the name` {
		t.Errorf("a missing container: %v", err)
	}
	must(t, w.emulator.Close())
	must(t, cosmos.VerifyNames(t.Context(), w.client, "contacts", "data"))
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

// The service answers 404/1013 for some seconds after a container was created: at the first start.
func TestVerifyAwaitsTheCreationOfContainers(t *testing.T) {
	for delay, ready := range map[time.Duration]bool{5 * time.Second: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{Network: pipenet.New(), CreationDelay: delay}})
			began := time.Now()
			err := cosmos.Verify(t.Context(), w.client, "contacts", cosmos.DataContainer("data"))
			if took := time.Since(began); took > delay+time.Second || took > 15*time.Second {
				t.Errorf("a creation of %s: verified after %s", delay, took)
			}
			if (err == nil) != ready || err != nil && (!fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "create it")) {
				t.Errorf("a creation of %s: %v", delay, err)
			}
		})
	}
}

// A document of a container that is being created is not absent: a repeat finds or stores it.
func TestContainerThatIsBeingCreatedIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{emulator: &cosmosemu.Options{CreationDelay: time.Hour}})
	if _, err := mediator.Send(t.Context(), w.app, contacts.ReadContact{Read: query.Read{ID: uuid.New()}}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read: %v, want unavailable", err)
	}
	if _, err := mediator.Send(t.Context(), w.app, john()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a commit: %v, want unavailable", err)
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

// A later read of the account that fails says nothing about its properties.
func TestKnownAccountStaysKnownInAnOutage(t *testing.T) {
	t.Parallel()
	emulator := cosmosemu.StartT(t, &cosmosemu.Options{})
	must(t, emulator.CreateContainer("contacts", cosmosemu.ContainerProps{ID: "data", PartitionKey: []string{"/partitionKey"}, DefaultTTL: -1}))
	account := connect(t, emulator, emulator.HTTPClient())
	pipeline := runtime.NewPipeline("test", "1", runtime.PipelineOptions{PerCall: []policy.Policy{account}}, &policy.ClientOptions{
		Transport: movedAt{emulator.HTTPClient(), ""}, Retry: policy.RetryOptions{MaxRetries: -1},
	})
	req, err := runtime.NewRequest(t.Context(), http.MethodGet, emulator.Endpoint())
	must(t, err)
	if resp, err := pipeline.Do(req); err != nil || resp.StatusCode != http.StatusGone {
		t.Fatalf("the account was read: %+v, %v", resp, err)
	}
	if err := account.Verify(); err != nil || account.Level() != "Session" {
		t.Errorf("level %q, %v; want what was read before", account.Level(), err)
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
