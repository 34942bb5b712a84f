package cosmosfeed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/changefeed"
	"feedbox/changefeed/cosmosfeed"
	"feedbox/changefeed/leasetest"
	"feedbox/infrastructure/emulator/cosmosemu"
)

func TestLeaseStoreConformance(t *testing.T) {
	a := newAccount(t, 2, true)
	a.createContainer("dotnet", "/partitionKey")
	for _, container := range []string{"leases", "dotnet"} {
		t.Run(container, func(t *testing.T) {
			leasetest.Run(t, func(*testing.T) changefeed.LeaseStore { return a.leases(container) })
		})
	}
}

func TestFeedReadsEveryRangeOnce(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		t.Run(fmt.Sprintf("policy=%t", withPolicy), func(t *testing.T) {
			a := newAccount(t, 4, withPolicy)
			a.put(200, 40)
			feed := a.feed("data")
			ranges, err := feed.Ranges(t.Context())
			if err != nil || len(ranges) != 4 {
				t.Fatalf("ranges %v, error %v", ranges, err)
			}
			seen := map[string]int{}
			for _, r := range ranges {
				ids, position := drain(t, feed, r, "")
				for _, id := range ids {
					seen[id]++
				}
				if len(ids) == 0 || !strings.HasPrefix(position, `"`) {
					t.Errorf("range %s: %d documents, position %s", r, len(ids), position)
				}
				if again, _ := drain(t, feed, r, position); len(again) != 0 {
					t.Errorf("range %s: %d documents after its end", r, len(again))
				}
			}
			if len(seen) != 200 {
				t.Errorf("%d documents seen, want 200", len(seen))
			}
		})
	}
}

// The documents are divided whether or not the service supports the EPK headers.
func TestNarrowRangesDivideTheirDocuments(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		t.Run(fmt.Sprintf("policy=%t", withPolicy), func(t *testing.T) {
			a := newAccount(t, 1, withPolicy)
			a.put(200, 40)
			feed := a.feed("data")
			seen := map[string]int{}
			for _, r := range []changefeed.FeedRange{{Min: "", Max: "0A"}, {Min: "0A", Max: "1FFF"}, {Min: "1FFF", Max: "2B0C"}, {Min: "2B0C", Max: "FF"}} {
				ids, _ := drain(t, feed, r, "")
				if len(ids) == 0 || len(ids) == 200 {
					t.Errorf("range %s has %d documents", r, len(ids))
				}
				for _, id := range ids {
					seen[id]++
				}
			}
			for id, n := range seen {
				if n != 1 {
					t.Errorf("document %s is in %d ranges", id, n)
				}
			}
			if len(seen) != 200 {
				t.Errorf("%d documents seen, want 200", len(seen))
			}
		})
	}
}

func TestNowIsAConcretePosition(t *testing.T) {
	a := newAccount(t, 1, true)
	a.put(10, 2)
	feed := a.feed("data")
	position, err := feed.Now(t.Context(), changefeed.FullRange())
	if err != nil {
		t.Fatal(err)
	}
	a.put(3, 1)
	ids, _ := drain(t, feed, changefeed.FullRange(), position)
	if len(ids) != 3 {
		t.Errorf("%d documents after %s, want the 3 written after it", len(ids), position)
	}
}

func TestSourceNamesTheContainer(t *testing.T) {
	a := newAccount(t, 1, true)
	s, err := a.feed("data").Source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db, err := a.client.NewDatabase("db")
	if err != nil {
		t.Fatal(err)
	}
	database, err := db.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	container, err := a.data.Read(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := changefeed.Source{Host: "127.0.0.1", Database: database.DatabaseProperties.ResourceID, Container: container.ContainerProperties.ResourceID}
	if s != want || want.Database == "" || want.Container == "" {
		t.Errorf("source %+v, want %+v: the ids of leases, which other SDKs find by them, begin so", s, want)
	}
}

func TestProcessorOverAzcosmos(t *testing.T) {
	t.Parallel()
	a := newAccount(t, 4, true)
	a.put(300, 40)
	got := &recorder{}
	start := func(host string) func() {
		p, err := changefeed.New(a.feed("data"), a.leases("leases"), got, &changefeed.Options{
			Host: host, Lanes: 4, PollMin: 20 * time.Millisecond, Acquire: 200 * time.Millisecond, AcquireFast: 50 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, p)
	}
	stopA := start("a")
	got.wait(t, 300)
	stopB := start("b")
	a.put(300, 40)
	got.wait(t, 600)
	stopA()
	a.put(100, 40)
	got.wait(t, 700)
	stopB()
	if n := got.count(); n != 700 {
		t.Errorf("%d deliveries, want 700: no host crashed", n)
	}
}

// The service's partition key ranges show where a key is.
func TestPlaceMatchesTheService(t *testing.T) {
	a := newAccount(t, 4, true)
	feed, err := cosmosfeed.NewFeed(a.client, "db", "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Place("x"); err == nil {
		t.Error("a place in a container that was not read yet")
	}
	if _, err := feed.Source(t.Context()); err != nil {
		t.Fatal(err)
	}
	ranges, err := feed.Ranges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a.put(40, 40)
	for _, r := range ranges {
		for ids, _ := drain(t, feed, r, ""); len(ids) > 0; ids = ids[1:] {
			place, err := feed.Place("key-" + ids[0])
			if err != nil || !r.Has(place) {
				t.Errorf("key-%s lies in %s, not at %s: error %v", ids[0], r, place, err)
			}
		}
	}
	for _, key := range []string{"<&>\u2028\"\\", "ä€😀", ""} {
		if place, err := feed.Place(key); err != nil || place != cosmosfeed.EPK(key) {
			t.Errorf("key %q lies at %q, error %v", key, place, err)
		}
	}
	if _, err := feed.Place("\xff"); err == nil {
		t.Error("a key that is no text has a place")
	}
}

// The feed of all versions delivers each write of a document, also one that was replaced or deleted
// since, and no deletion.
func TestVersionsFeedReadsEveryWrite(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{Partitions: 2, VersionRetention: time.Hour})
	a := newAccountOn(t, srv, true)
	feed, err := cosmosfeed.NewVersionsFeed(a.client, "db", "data")
	if err != nil {
		t.Fatal(err)
	}
	parts := []changefeed.FeedRange{{Min: "", Max: "0A"}, {Min: "0A", Max: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}, {Min: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", Max: "FF"}}
	var began []string
	for _, r := range parts {
		position, err := feed.Now(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		began = append(began, position)
	}
	a.put(40, 20)
	a.put(40, 20)
	for i := range 40 {
		if _, err := a.data.DeleteItem(t.Context(), azcosmos.NewPartitionKeyString(fmt.Sprint("key-", i%20)), fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for i, r := range parts {
		ids, _ := drain(t, feed, r, began[i])
		if len(ids) == 0 || len(ids) == 80 {
			t.Errorf("range %s has %d versions", r, len(ids))
		}
		for _, id := range ids {
			seen[id]++
		}
	}
	for i := range 40 {
		if n := seen[fmt.Sprint(i)]; n != 2 {
			t.Errorf("document %d was delivered %d times, want 2", i, n)
		}
	}
}

// The reply of the service does not say what is missing.
func TestAccountWithoutVersionsIsNamed(t *testing.T) {
	a := newAccount(t, 1, true)
	feed, err := cosmosfeed.NewVersionsFeed(a.client, "db", "data")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := feed.Now(t.Context(), changefeed.FullRange()); !errors.Is(err, changefeed.ErrPermanent) || !strings.Contains(err.Error(), "continuous backup") {
		t.Errorf("error %v", err)
	}
}

// The feed of all versions has no beginning, and a client without the policies would read another feed.
func TestVersionsFeedRefusesTheBeginningAndOtherClients(t *testing.T) {
	srv := cosmosemu.StartT(t, &cosmosemu.Options{VersionRetention: time.Hour})
	a := newAccountOn(t, srv, true)
	a.put(1, 1)
	for _, c := range []struct {
		client  *azcosmos.Client
		request changefeed.ReadRequest
		want    string
	}{
		{a.client, changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 1}, "no beginning"},
		{a.client, changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 1, Since: time.Now()}, "no beginning"},
		{connect(t, srv, srv.Endpoint(), srv.ClientOptions()).client, changefeed.ReadRequest{Range: changefeed.FullRange(), MaxItems: 1, Continuation: `"0"`}, "ClientOptions"},
	} {
		feed, err := cosmosfeed.NewVersionsFeed(c.client, "db", "data")
		if err != nil {
			t.Fatal(err)
		}
		page, err := feed.Read(t.Context(), c.request)
		if !errors.Is(err, changefeed.ErrPermanent) || !strings.Contains(fmt.Sprint(err), c.want) || page != nil {
			t.Errorf("page %v, error %v, want one with %q", page, err, c.want)
		}
	}
}
