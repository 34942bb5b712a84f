package cosmosemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

type change struct {
	ID  string `json:"id"`
	PK  string `json:"pk"`
	LSN int64  `json:"_lsn"`
	N   int    `json:"n"`
}

// drain reads the feed of one range to its end.
func drain(t *testing.T, c *azcosmos.ContainerClient, token *string, o azcosmos.ChangeFeedOptions) []change {
	t.Helper()
	var out []change
	for {
		o.Continuation = token
		r, err := c.ReadChangeFeed(t.Context(), &o)
		if err != nil {
			t.Fatal(err)
		}
		*token = r.ContinuationToken
		if r.Count == 0 {
			return out
		}
		for _, item := range r.Items {
			var ch change
			if err := json.Unmarshal(item, &ch); err != nil {
				t.Fatal(err)
			}
			out = append(out, ch)
		}
	}
}

func ids(changes []change) []string {
	var out []string
	for _, ch := range changes {
		out = append(out, ch.ID)
	}
	return out
}

var everything = &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}

func create(t *testing.T, c *azcosmos.ContainerClient, id, pk string) {
	t.Helper()
	if _, err := c.UpsertItem(t.Context(), key(pk), doc(id, pk), nil); err != nil {
		t.Fatal(err)
	}
}

func TestChangeFeedOverFourRanges(t *testing.T) {
	_, c := start(t, &cosmosemu.Options{Partitions: 4})
	ranges, err := c.ReadFeedRanges(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(ranges) != 4 || ranges[1].MinInclusive != "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF" {
		t.Fatalf("ranges %v", ranges)
	}
	for i := range 40 {
		create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i))
	}
	total := 0
	for _, r := range ranges {
		token := ""
		got := drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: 3})
		if len(got) < 3 {
			t.Errorf("range %s has %d changes", r.MinInclusive, len(got))
		}
		if !slices.IsSortedFunc(got, func(a, b change) int { return int(a.LSN - b.LSN) }) {
			t.Errorf("range %s is not in LSN order: %v", r.MinInclusive, got)
		}
		total += len(got)
		if again := drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: &r}); len(again) != 0 {
			t.Errorf("range %s repeats %v", r.MinInclusive, again)
		}
	}
	if total != 40 {
		t.Errorf("%d changes in all ranges, want 40", total)
	}
}

func TestChangeFeedReturnsLatestVersionOnce(t *testing.T) {
	_, c := start(t, nil)
	create(t, c, "1", "a")
	create(t, c, "2", "a")
	token := ""
	o := azcosmos.ChangeFeedOptions{FeedRange: everything}
	if got := ids(drain(t, c, &token, o)); fmt.Sprint(got) != "[1 2]" {
		t.Fatalf("feed %v", got)
	}
	create(t, c, "3", "a")
	create(t, c, "1", "a")
	create(t, c, "1", "a")
	if _, err := c.DeleteItem(t.Context(), key("a"), "2", nil); err != nil {
		t.Fatal(err)
	}
	if got := ids(drain(t, c, &token, o)); fmt.Sprint(got) != "[3 1]" {
		t.Errorf("feed continues with %v, want [3 1]", got)
	}
	fresh := ""
	if got := ids(drain(t, c, &fresh, o)); fmt.Sprint(got) != "[3 1]" {
		t.Errorf("feed from the beginning %v, want [3 1]", got)
	}
}

func TestChangeFeedPageNeverCutsATransaction(t *testing.T) {
	_, c := start(t, nil)
	for i := range 3 {
		b := c.NewTransactionalBatch(key("a"))
		for j := range 5 {
			b.CreateItem(doc(fmt.Sprintf("%d-%d", i, j), "a"), nil)
		}
		statuses(t, c, b)
	}
	token := ""
	for i := range 3 {
		o := &azcosmos.ChangeFeedOptions{FeedRange: everything, MaxItemCount: 2}
		if token != "" {
			o.Continuation = &token
		}
		r, err := c.ReadChangeFeed(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Count != 5 {
			t.Fatalf("page %d has %d items, want the 5 of one transaction", i, r.Count)
		}
		lsns := map[int64]bool{}
		for _, item := range r.Items {
			var ch change
			if err := json.Unmarshal(item, &ch); err != nil {
				t.Fatal(err)
			}
			lsns[ch.LSN] = true
		}
		if len(lsns) != 1 {
			t.Errorf("page %d has LSNs %v", i, lsns)
		}
		token = r.ContinuationToken
	}
}

func TestChangeFeedStartsAtATime(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "old", "a")
	srv.Advance(10 * time.Second)
	from := time.Now().Add(8 * time.Second)
	create(t, c, "new", "a")
	token := ""
	if got := ids(drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything, StartFrom: &from})); fmt.Sprint(got) != "[new]" {
		t.Errorf("feed from a time: %v", got)
	}
	future, token := time.Now().Add(time.Hour), ""
	if got := drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything, StartFrom: &future}); len(got) != 0 {
		t.Errorf("feed from the future: %v", got)
	}
}

func TestChangeFeedOfOnePartitionKey(t *testing.T) {
	_, c := start(t, &cosmosemu.Options{Partitions: 2})
	for i := range 10 {
		create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i%2))
	}
	pk, n := key("pk1"), 0
	for _, r := range []azcosmos.FeedRange{{MinInclusive: "", MaxExclusive: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}, {MinInclusive: "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", MaxExclusive: "FF"}} {
		token := ""
		for _, ch := range drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: &r, PartitionKey: &pk}) {
			if ch.PK != "pk1" {
				t.Errorf("change of %s", ch.PK)
			}
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d changes, want 5", n)
	}
}

func TestChangeFeedFromNow(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	feed := func(position string) answer {
		return send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{
			"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0", "If-None-Match": position,
		})
	}
	r := feed("*")
	if r.StatusCode != http.StatusNotModified || r.Header.Get("etag") == "" {
		t.Fatalf("from now: %d, etag %q", r.StatusCode, r.Header.Get("etag"))
	}
	create(t, c, "2", "a")
	if r = feed(r.Header.Get("etag")); r.StatusCode != http.StatusOK || r.Header.Get("x-ms-item-count") != "1" {
		t.Errorf("after one more: %d with %s items", r.StatusCode, r.Header.Get("x-ms-item-count"))
	}
	if r = feed(r.Header.Get("etag")); r.StatusCode != http.StatusNotModified {
		t.Errorf("at the end: %d", r.StatusCode)
	}
	if r = feed(`"x"`); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a foreign position: %d", r.StatusCode)
	}
}
