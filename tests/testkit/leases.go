package testkit

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/infrastructure/relay/relayport"
)

// Leases reads the leases of a relay.
type Leases struct {
	feed     *cosmosfeed.Feed
	operator *changefeed.Operator
}

// OpenLeases opens the leases of the processor, "" for the relay's default.
func (e Endpoints) OpenLeases(t *testing.T, processor string) *Leases {
	t.Helper()
	client := e.cosmosClient(t)
	feed, err := cosmosfeed.NewFeed(client, e.Database, e.Container)
	if err != nil {
		t.Fatal(err)
	}
	store, err := cosmosfeed.NewLeaseStore(client, e.Database, e.Leases)
	if err != nil {
		t.Fatal(err)
	}
	if processor == "" {
		processor = "feedbox"
	}
	return &Leases{feed: feed, operator: changefeed.NewOperator(feed, store, &changefeed.OperatorOptions{Processor: processor})}
}

// AdoptParked makes the processor the owner of the parked events.
func (e Endpoints) AdoptParked(t *testing.T, processor string) {
	t.Helper()
	markers, err := cosmosfeed.NewLeaseStore(e.cosmosClient(t), e.Database, e.Parked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&relayport.Store{Markers: markers}).Adopt(t.Context(), processor); err != nil {
		t.Fatal(err)
	}
}

func (e Endpoints) cosmosClient(t testing.TB) *azcosmos.Client {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, cred, cosmosfeed.ClientOptions(nil))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// List returns all leases. A fault of the store is an error.
func (l *Leases) List(ctx context.Context) ([]changefeed.Lease, error) { return l.operator.Leases(ctx) }

// Owners returns the owner of each range; "" for an unowned range. It is nil if the store does not
// answer.
func (l *Leases) Owners(ctx context.Context) map[changefeed.FeedRange]string {
	leases, err := l.operator.Leases(ctx)
	if err != nil {
		return nil
	}
	owners := make(map[changefeed.FeedRange]string, len(leases))
	for i := range leases {
		owners[leases[i].Range] = leases[i].Owner
	}
	return owners
}

// Keys reads the change feed of a range and returns the partition keys in it.
func (l *Leases) Keys(ctx context.Context, t *testing.T, r changefeed.FeedRange) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for continuation := ""; ; {
		page, err := l.feed.Read(ctx, changefeed.ReadRequest{Range: r, Continuation: continuation, MaxItems: 1000})
		if err != nil {
			t.Fatalf("read the range %s: %v", r, err)
		}
		for _, item := range page.Items {
			var d struct{ PartitionKey string }
			if err := json.Unmarshal(item.Raw, &d); err != nil {
				t.Fatal(err)
			}
			keys[d.PartitionKey] = true
		}
		caughtUp := page.CaughtUp
		continuation = page.Continuation
		if page.Release != nil {
			page.Release()
		}
		if caughtUp {
			return keys
		}
	}
}
