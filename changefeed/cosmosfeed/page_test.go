package cosmosfeed_test

import (
	"bytes"
	"testing"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A page costs what was asked for it, also when the bounds of its range had to be found out.
func TestAPageCostsWhatItTook(t *testing.T) {
	a := newAccount(t, 2, true)
	a.put(40, 10)
	feed := a.feed("data")
	req := changefeed.ReadRequest{Range: changefeed.FeedRange{Min: "", Max: "1FFF"}, MaxItems: 5}
	var charges []float64
	for range 2 {
		page, err := feed.Read(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		charges = append(charges, page.RequestCharge)
	}
	if charges[1] <= 0 || charges[0] != 2*charges[1] {
		t.Errorf("charges %v, want the first to be that of two reads", charges)
	}
}

// The items of a page stay as they are until it is released.
func TestItemsStayUntilTheirPageIsReleased(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(60, 10)
	feed := a.feed("data")
	var pages []*changefeed.Page
	var copies [][]byte
	at := ""
	for range 8 {
		page, err := feed.Read(t.Context(), changefeed.ReadRequest{Range: changefeed.FullRange(), Continuation: at, MaxItems: 5})
		if err != nil || len(page.Items) == 0 {
			t.Fatalf("%d items, %v", len(page.Items), err)
		}
		pages, copies, at = append(pages, page), append(copies, bytes.Clone(page.Items[0].Raw)), page.Continuation
	}
	for i, page := range pages {
		if !bytes.Equal(page.Items[0].Raw, copies[i]) {
			t.Fatalf("page %d has %s, had %s", i, page.Items[0].Raw, copies[i])
		}
		page.Release()
	}
}

// .NET's processor may keep its records under another partition key than their ids, in a
// container that has such a key.
func TestRecordsUnderAnotherPartitionKey(t *testing.T) {
	a := newAccount(t, 2, true)
	a.createContainer("dotnet", "/partitionKey")
	for name, key := range map[string]string{"dotnet": "other", "leases": "p.one"} {
		container, err := a.client.NewContainer("db", name)
		if err != nil {
			t.Fatal(err)
		}
		body := []byte(`{"id":"p.one","partitionKey":"other"}`)
		if _, err := container.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), body, nil); err != nil {
			t.Fatal(err)
		}
		store := a.leases(name)
		records, err := store.List(t.Context(), "p.")
		if err != nil || len(records) != 1 {
			t.Fatalf("%s: records %v, %v", name, records, err)
		}
		record, err := store.Read(t.Context(), "p.one")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if record.ETag, err = store.Replace(t.Context(), record); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := store.Delete(t.Context(), "p.one", record.ETag); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
