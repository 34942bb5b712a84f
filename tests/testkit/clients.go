package testkit

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/lab/verify"
)

// ContainerClient opens a container of the emulator with the vendor's SDK, like any other client.
func (e Endpoints) ContainerClient(t testing.TB, name string) *azcosmos.ContainerClient {
	t.Helper()
	cred, err := azcosmos.NewKeyCredential(e.CosmosKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azcosmos.NewClientWithKey(e.CosmosEndpoint, cred, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewContainer(e.Database, name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ReadStore reads every contact and event of the data container.
func ReadStore(ctx context.Context, t *testing.T, data *azcosmos.ContainerClient) (contacts []verify.Aggregate, events []verify.Event) {
	t.Helper()
	pager := data.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			t.Fatalf("read the store: %v", err)
		}
		for _, raw := range page.Items {
			d, err := verify.DecodeDocument(raw)
			if err != nil {
				t.Fatalf("read the store: %v", err)
			}
			switch d.Kind {
			case verify.KindAggregate:
				contacts = append(contacts, d.Aggregate())
			case verify.KindEvent:
				events = append(events, d.Event())
			}
		}
	}
	return contacts, events
}

// DuplicatesDropped returns the number of messages that the topic has accepted and dropped.
func (e Endpoints) DuplicatesDropped(t *testing.T) int64 {
	t.Helper()
	resp, err := http.Get(e.ServiceBusAdmin + "/$counters/" + e.Topic)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var c struct{ Duplicates int64 }
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("counters of %s: status %d, %v", e.Topic, resp.StatusCode, err)
	}
	return c.Duplicates
}
