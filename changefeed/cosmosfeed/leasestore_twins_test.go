package cosmosfeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"feedbox/changefeed"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// twin stores a second record with the id of each lease, under another partition key.
func twin(t *testing.T, a *account, partitionKey func(id string) string, edit func(lease map[string]any)) (twins int) {
	t.Helper()
	box, err := a.client.NewContainer("db", "twins")
	if err != nil {
		t.Fatal(err)
	}
	pager := box.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page.Items {
			var lease map[string]any
			if err := json.Unmarshal(raw, &lease); err != nil {
				t.Fatal(err)
			}
			if lease["LeaseToken"] == nil {
				continue
			}
			for name := range lease {
				if strings.HasPrefix(name, "_") {
					delete(lease, name)
				}
			}
			key := partitionKey(lease["id"].(string)) //nolint:forcetypeassert // ids are strings
			lease["partitionKey"] = key
			edit(lease)
			body, err := json.Marshal(lease)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := box.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(key), body, nil); err != nil {
				t.Fatal(err)
			}
			twins++
		}
	}
	return twins
}

// Two hosts of .NET's processor that initialize a container keyed by /partitionKey at once
// leave each lease twice (azure-cosmos-dotnet-v3#5799).
func TestLeasesWithTwoRecordsAreReadAndReported(t *testing.T) {
	t.Parallel()
	a := newAccount(t, 2, true)
	a.createContainer("twins", "/partitionKey")
	var mu sync.Mutex
	got := map[string]int{}
	doubts := map[string]string{}
	count := changefeed.Each(func(_ context.Context, item changefeed.Item) error {
		var doc struct{ ID string }
		if err := json.Unmarshal(item.Raw, &doc); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		got[doc.ID]++
		return nil
	})
	seen := func(n int) bool { mu.Lock(); defer mu.Unlock(); return len(got) == n }
	start := func() (stop func()) {
		p, err := changefeed.New(a.feed("data"), a.leases("twins"), count, &changefeed.Options{
			Processor: "p", Host: "h", Acquire: 500 * time.Millisecond, Expiry: 8 * time.Second, PollMax: 200 * time.Millisecond, PollMin: 20 * time.Millisecond,
			Observer: &changefeed.Observer{LeaseError: func(e changefeed.LeaseError) {
				mu.Lock()
				defer mu.Unlock()
				if e.Op == changefeed.OpCheckLeases {
					doubts[e.Lease] = e.Err.Error()
				}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	put := func(from, n int) {
		for i := from; i < from+n; i++ {
			pk := fmt.Sprint("key-", i%10)
			if _, err := a.data.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(pk), fmt.Appendf(nil, `{"id":"%d","pk":%q}`, i, pk), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop := start()
	put(0, 20)
	within(t, "delivered", func() bool { return seen(20) })
	time.Sleep(2 * time.Second) // until the checkpoints are written
	stop()
	if n := twin(t, a, func(id string) string { return "guid-" + id }, func(map[string]any) {}); n != 2 {
		t.Fatalf("%d leases were doubled", n)
	}
	stop = start()
	put(20, 20)
	within(t, "delivered beside the twins", func() bool { return seen(40) })
	time.Sleep(5 * time.Second) // some listings, while the twins' positions stay
	put(40, 20)
	within(t, "still delivered", func() bool { return seen(60) })
	stop()
	mu.Lock()
	defer mu.Unlock()
	for id, n := range got {
		if n != 1 {
			t.Errorf("document %s was delivered %d times", id, n)
		}
	}
	if len(doubts) != 2 {
		t.Errorf("reported %v, want both leases", doubts)
	}
	for _, text := range doubts {
		if !strings.Contains(text, "two records") || !strings.Contains(text, `"guid-`) {
			t.Errorf("reported %q", text)
		}
	}
}

// Both records were left by .NET: the lower position skips nothing. A record that this package
// has written is kept, wherever the other one is.
func TestOfTwoRecordsTheOneThatSkipsNothingIsUsed(t *testing.T) {
	record := func(key, position, signed string) string {
		return fmt.Sprintf(`{"id":"p..1","partitionKey":%q,"ContinuationToken":%q,"properties":{"signed":%q}}`, key, position, signed)
	}
	for name, tt := range map[string]struct{ used, other string }{
		"the lower position":        {record("b", `"9"`, ""), record("a", `"10"`, "")},
		"the one with our key":      {record("p..1", `"9"`, ""), record("a", `"9"`, "")},
		"the first key":             {record("a", `"9"`, ""), record("b", `"9"`, "")},
		"the one this package uses": {record("b", `"20"`, " now"), record("a", `"9"`, "")},
		"the same one each time":    {record("p..1", `"20"`, " now"), record("a", `"9"`, " now")},
	} {
		a := newAccount(t, 1, true)
		a.createContainer("twins", "/partitionKey")
		box, err := a.client.NewContainer("db", "twins")
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{tt.other, tt.used} {
			var head struct{ PartitionKey string }
			if err := json.Unmarshal([]byte(body), &head); err != nil {
				t.Fatal(err)
			}
			if _, err := box.CreateItem(t.Context(), azcosmos.NewPartitionKeyString(head.PartitionKey), []byte(body), nil); err != nil {
				t.Fatal(err)
			}
		}
		store := a.leases("twins")
		for range 2 {
			records, err := store.List(t.Context(), "p..")
			if err != nil || len(records) != 1 || records[0].Doubt == nil {
				t.Fatalf("%s: listed %v, error %v", name, records, err)
			}
			var want, other, got struct{ PartitionKey string }
			if json.Unmarshal([]byte(tt.used), &want) != nil || json.Unmarshal(records[0].Body, &got) != nil || got != want {
				t.Errorf("%s: used %s", name, records[0].Body)
			}
			// An operator deletes the record that the advice names.
			if json.Unmarshal([]byte(tt.other), &other) != nil || !strings.Contains(records[0].Doubt.Error(), fmt.Sprintf("%q is used, the one with %q is not: delete that one", want.PartitionKey, other.PartitionKey)) {
				t.Errorf("%s: reported %v", name, records[0].Doubt)
			}
			if _, err := store.Replace(t.Context(), records[0]); err != nil { // of the record that was listed
				t.Errorf("%s: replace: %v", name, err)
			}
		}
	}
}
