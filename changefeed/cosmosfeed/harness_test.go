package cosmosfeed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// account is an emulator with a data and a lease container, and a client.
type account struct {
	t      *testing.T
	srv    *cosmosemu.Server
	client *azcosmos.Client
	data   *azcosmos.ContainerClient
}

func newAccount(t *testing.T, partitions int, withPolicy bool) *account {
	t.Helper()
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: partitions})
	return newAccountOn(t, srv, withPolicy)
}

func newAccountOn(t *testing.T, srv *cosmosemu.Server, withPolicy bool) *account {
	t.Helper()
	options := srv.ClientOptions()
	if withPolicy {
		options = cosmosfeed.ClientOptions(options)
	}
	a := connect(t, srv, srv.Endpoint(), options)
	a.create()
	return a
}

// newAccountWith returns an account whose client has one more policy, outside cosmosfeed's.
func newAccountWith(t *testing.T, srv *cosmosemu.Server, p policy.Policy) *account {
	t.Helper()
	options := *srv.ClientOptions()
	options.PerCallPolicies = append(options.PerCallPolicies, p)
	a := connect(t, srv, srv.Endpoint(), cosmosfeed.ClientOptions(&options))
	a.create()
	return a
}

// newAccountAt returns the same account for a host with caches of its own, because the SDK
// caches by the name of the endpoint.
func newAccountAt(t *testing.T, a *account, host string) *account {
	t.Helper()
	options := *a.srv.ClientOptions()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, a.srv.Addr())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	options.Transport = &http.Client{Transport: transport}
	_, port, err := net.SplitHostPort(a.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, a.srv, "http://"+host+".localhost:"+port, cosmosfeed.ClientOptions(&options))
}

func connect(t *testing.T, srv *cosmosemu.Server, endpoint string, options *azcosmos.ClientOptions) *account {
	t.Helper()
	key, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(endpoint, key, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := &account{t: t, srv: srv, client: client}
	if a.data, err = client.NewContainer("db", "data"); err != nil {
		t.Fatal(err)
	}
	return a
}

// create makes the database, a data and a lease container.
func (a *account) create() {
	a.t.Helper()
	if _, err := a.client.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: "db"}, nil); err != nil {
		a.t.Fatal(err)
	}
	a.createContainer("data", "/pk")
	a.createContainer("leases", "/id")
}

func (a *account) createContainer(id string, paths ...string) {
	a.t.Helper()
	db, err := a.client.NewDatabase("db")
	if err != nil {
		a.t.Fatal(err)
	}
	kind := azcosmos.PartitionKeyKindHash
	if len(paths) > 1 {
		kind = azcosmos.PartitionKeyKindMultiHash
	}
	_, err = db.CreateContainer(context.Background(), azcosmos.ContainerProperties{
		ID: id, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Kind: kind, Paths: paths, Version: 2},
	}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *account) feed(container string) *cosmosfeed.Feed {
	a.t.Helper()
	feed, err := cosmosfeed.NewFeed(a.client, "db", container)
	if err != nil {
		a.t.Fatal(err)
	}
	return feed
}

func (a *account) leases(container string) *cosmosfeed.LeaseStore {
	a.t.Helper()
	store, err := cosmosfeed.NewLeaseStore(a.client, "db", container)
	if err != nil {
		a.t.Fatal(err)
	}
	return store
}

// put writes documents 0..n-1 over some keys.
func (a *account) put(n, keys int) {
	a.t.Helper()
	for i := range n {
		pk := fmt.Sprintf("key-%d", i%keys)
		body, err := json.Marshal(map[string]any{"id": fmt.Sprintf("%d", i), "pk": pk, "n": i})
		if err != nil {
			a.t.Fatal(err)
		}
		if _, err := a.data.UpsertItem(context.Background(), azcosmos.NewPartitionKeyString(pk), body, nil); err != nil {
			a.t.Fatal(err)
		}
	}
}

// drain reads a range from a position to its end.
func drain(t *testing.T, feed *cosmosfeed.Feed, r changefeed.FeedRange, from string) (ids []string, position string) {
	t.Helper()
	for pages := 0; ; pages++ {
		if pages > 1000 {
			t.Fatalf("range %s has no end", r)
		}
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: r, Continuation: from, MaxItems: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			var doc struct{ ID string }
			if err := json.Unmarshal(item.Raw, &doc); err != nil {
				t.Fatalf("%s: %v", item.Raw, err)
			}
			if item.LSN == 0 || item.Timestamp == 0 || (len(item.Key) == 0 && bytes.Contains(item.Raw, []byte(`"pk"`))) {
				t.Fatalf("item %s: LSN %d, time %d, key %s", item.Raw, item.LSN, item.Timestamp, item.Key)
			}
			ids = append(ids, doc.ID)
		}
		if page.Release != nil {
			page.Release()
		}
		from = page.Continuation
		if page.CaughtUp {
			return ids, from
		}
	}
}

// recorder counts deliveries.
type recorder struct {
	mu sync.Mutex
	n  int
}

func (r *recorder) Handle(_ context.Context, b *changefeed.Batch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n += len(b.Items)
	return nil
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *recorder) wait(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for r.count() < n {
		if time.Now().After(deadline) {
			t.Fatalf("%d deliveries after a minute, want %d", r.count(), n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// run starts a processor and returns a function that drains it.
func run(t *testing.T, p *changefeed.Processor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}
