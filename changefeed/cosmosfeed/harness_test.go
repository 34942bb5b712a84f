package cosmosfeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/emulator/cosmosemu"

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
	key, err := azcosmos.NewKeyCredential(srv.Key())
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(srv.Endpoint(), key, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := &account{t: t, srv: srv, client: client}
	ctx := context.Background()
	if _, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "db"}, nil); err != nil {
		t.Fatal(err)
	}
	a.createContainer("data", "/pk")
	a.createContainer("leases", "/id")
	if a.data, err = client.NewContainer("db", "data"); err != nil {
		t.Fatal(err)
	}
	return a
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
	feed, err := cosmosfeed.NewFeed(a.client, "db", container, nil)
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
			if item.LSN == 0 || item.Timestamp == 0 || len(item.Key) == 0 {
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
