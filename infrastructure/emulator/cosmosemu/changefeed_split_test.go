package cosmosemu_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"feedbox/infrastructure/emulator/cosmosemu"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A feed whose range is split while it is read loses and repeats nothing.
func TestChangeFeedContinuesAcrossSplitsAndMerges(t *testing.T) {
	srv, c := start(t, nil)
	seen := map[string]int{}
	token, n := "", 0
	write := func(count int) {
		for range count {
			create(t, c, strconv.Itoa(n), "pk"+strconv.Itoa(n))
			n++
		}
	}
	read := func() {
		for _, ch := range drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: everything, MaxItemCount: 7}) {
			seen[ch.ID]++
		}
	}
	split := func(id string) {
		if err := srv.Split("db", "c", id); err != nil {
			t.Fatal(err)
		}
	}
	write(50)
	r, err := c.ReadChangeFeed(t.Context(), &azcosmos.ChangeFeedOptions{FeedRange: everything, MaxItemCount: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range r.Items {
		var ch change
		if err := json.Unmarshal(item, &ch); err != nil {
			t.Fatal(err)
		}
		seen[ch.ID]++
	}
	token = r.ContinuationToken
	split("0")
	write(50)
	read()
	split("1")
	split("2")
	write(50)
	read()
	ranges, err := srv.PartitionKeyRanges("db", "c")
	if err != nil || len(ranges) != 4 {
		t.Fatalf("ranges %v (%v)", ranges, err)
	}
	for i := range n {
		if seen[strconv.Itoa(i)] != 1 {
			t.Errorf("item %d was seen %d times", i, seen[strconv.Itoa(i)])
		}
	}
	if err := srv.Merge("db", "c", ranges[0].ID, ranges[1].ID); err != nil {
		t.Fatal(err)
	}
	write(20)
	// azcosmos would read the merged range once for each of its parents.
	total := 0
	for _, r := range live(t, srv) {
		total += len(feedOf(t, srv, r.ID))
	}
	if total != n {
		t.Errorf("the ranges after the merge have %d changes, want %d", total, n)
	}
}

func live(t *testing.T, srv *cosmosemu.Server) []cosmosemu.PartitionKeyRange {
	t.Helper()
	ranges, err := srv.PartitionKeyRanges("db", "c")
	if err != nil {
		t.Fatal(err)
	}
	return ranges
}

// feedOf reads the whole feed of one range without azcosmos.
func feedOf(t *testing.T, srv *cosmosemu.Server, rangeID string, headers ...string) []change {
	t.Helper()
	var out []change
	h := map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": rangeID, "x-ms-max-item-count": "9"}
	for i := 0; i+1 < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	for {
		r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", h)
		if r.StatusCode == http.StatusNotModified {
			return out
		}
		var page struct {
			Documents []change
		}
		text := r.Body
		if err := json.Unmarshal([]byte(text), &page); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("feed of %s: %d %s", rangeID, r.StatusCode, text)
		}
		out = append(out, page.Documents...)
		h["If-None-Match"] = r.Header.Get("etag")
	}
}

func TestDeadRangeIs410WithSubstatus1002(t *testing.T) {
	srv, c := start(t, nil)
	create(t, c, "1", "a")
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0"})
	if r.StatusCode != http.StatusGone || r.Header.Get("x-ms-substatus") != "1002" {
		t.Errorf("dead range: %d/%s", r.StatusCode, r.Header.Get("x-ms-substatus"))
	}
	read, err := c.ReadItem(t.Context(), key("a"), "1", nil)
	if err != nil || len(read.Value) == 0 {
		t.Errorf("point read after a split: %v", err)
	}
}
