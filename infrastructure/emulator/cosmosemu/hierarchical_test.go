package cosmosemu_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"feedbox/infrastructure/emulator/cosmosemu"
)

func TestHierarchicalPartitionKeys(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{Partitions: 4}, cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/tenant", "/user"}})
	full := func(i int) azcosmos.PartitionKey {
		return azcosmos.NewPartitionKeyString("t" + strconv.Itoa(i%3)).AppendString("u" + strconv.Itoa(i))
	}
	for i := range 12 {
		body := fmt.Appendf(nil, `{"id":"%d","tenant":"t%d","user":"u%d"}`, i, i%3, i)
		if _, err := c.CreateItem(t.Context(), full(i), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ReadItem(t.Context(), full(7), "7", nil); err != nil {
		t.Error(err)
	}
	_, err := c.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("t1"), "7", nil)
	wantStatus(t, "read with half a key", err, 400)
	want := `[["1" "4" "7" "10"]]`
	all := azcosmos.NewPartitionKey()
	if got := fmt.Sprint(rows(t, c, "SELECT VALUE c.id FROM c WHERE c.tenant = 't1'", all, nil)); got != want {
		t.Errorf("query by the first level: %s, want %s", got, want)
	}
	if got := fmt.Sprint(rows(t, c, "SELECT VALUE c.id FROM c", azcosmos.NewPartitionKeyString("t1"), nil)); got != want {
		t.Errorf("query with half a key: %s, want %s", got, want)
	}
	if got := fmt.Sprint(rows(t, c, "SELECT VALUE c.id FROM c WHERE c.tenant = 't1' AND c.user = 'u4' ORDER BY c.id", all, nil)); got != `[["4"]]` {
		t.Errorf("query by both levels: %s", got)
	}
	half, found := azcosmos.NewPartitionKeyString("t1"), 0
	ranges, err := c.ReadFeedRanges(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ranges {
		token := ""
		found += len(drain(t, c, &token, azcosmos.ChangeFeedOptions{FeedRange: &r, PartitionKey: &half}))
	}
	if found != 4 {
		t.Errorf("feed of the first level: %d changes, want 4", found)
	}
	if err := srv.Split("db", "c", "1"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, c, "SELECT * FROM c"); n != 12 {
		t.Errorf("%d items after a split, want 12", n)
	}
}

// A client that reads a window gets only its part of the range, and the windows of a range have
// no gap or overlap.
func TestWindowsOfEffectivePartitionKeys(t *testing.T) {
	srv, c := start(t, nil)
	for i := range 40 {
		create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i))
	}
	var seen []string
	for _, w := range [][2]string{{"", "10"}, {"10", "2A00"}, {"2A00", "FF"}} {
		window := []string{"x-ms-start-epk", w[0], "x-ms-end-epk", w[1], "x-ms-read-key-type", "EffectivePartitionKeyRange"}
		got := ids(feedOf(t, srv, "0", window...))
		if len(got) == 0 || len(got) == 40 {
			t.Errorf("window %v has %d changes", w, len(got))
		}
		h := map[string]string{
			"content-type": "application/query+json", "x-ms-documentdb-query": "True", "x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-max-item-count": "-1",
		}
		for i := 0; i < len(window); i += 2 {
			h[window[i]] = window[i+1]
		}
		r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", `{"query":"SELECT VALUE c.id FROM c"}`, h)
		if n := strings.Count(r.Body, `"`) / 2; r.Header.Get("x-ms-item-count") != strconv.Itoa(len(got)) {
			t.Errorf("a query of window %v has %s rows (%d), the feed %d changes", w, r.Header.Get("x-ms-item-count"), n, len(got))
		}
		seen = append(seen, got...)
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 40 {
		t.Errorf("the windows show %d items, want 40", len(seen))
	}
	r := send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkeyrangeid": "0", "x-ms-start-epk": "xyz"})
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("an invalid window: %d", r.StatusCode)
	}
}

func TestReadMany(t *testing.T) {
	srv, c := start(t, &cosmosemu.Options{Partitions: 3})
	var want []azcosmos.ItemIdentity
	for i := range 30 {
		create(t, c, strconv.Itoa(i), "pk"+strconv.Itoa(i))
		want = append(want, azcosmos.ItemIdentity{ID: strconv.Itoa(i), PartitionKey: key("pk" + strconv.Itoa(i))})
	}
	want = append(want, azcosmos.ItemIdentity{ID: "none", PartitionKey: key("pk1")})
	r, err := c.ReadManyItems(t.Context(), want, nil)
	if err != nil || len(r.Items) != 30 {
		t.Errorf("%d items (%v), want 30", len(r.Items), err)
	}
	if err := srv.Split("db", "c", "0"); err != nil {
		t.Fatal(err)
	}
	if r, err = c.ReadManyItems(t.Context(), want, nil); err != nil || len(r.Items) != 30 {
		t.Errorf("after a split: %d items (%v), want 30", len(r.Items), err)
	}
}

// A feed reads one physical partition. The first values of a key may be in several of them.
func TestFeedOfFirstValuesInSeveralRangesIsRefused(t *testing.T) {
	srv, c := start(t, nil, cosmosemu.ContainerProps{ID: "c", PartitionKey: []string{"/tenant", "/user"}})
	for i := range 8 {
		body := fmt.Appendf(nil, `{"id":"%d","tenant":"t","user":"u%d"}`, i, i)
		if _, err := c.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("t").AppendString("u"+strconv.Itoa(i)), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	feed := func(key, rangeID string) answer {
		return send(t, srv, http.MethodGet, "dbs/db/colls/c/docs", "", map[string]string{"A-IM": "Incremental Feed", "x-ms-documentdb-partitionkey": key, "x-ms-documentdb-partitionkeyrangeid": rangeID})
	}
	if r := feed(`["t"]`, ""); len(idsOf(t, r)) != 8 {
		t.Errorf("in one range: %d %s", r.StatusCode, r.Body)
	}
	tenant := epkOf(t, srv, "c.tenant = 't'") // 32 digits, then those of the user
	if err := srv.SplitAt("db", "c", "0", tenant[:32]+"20"); err != nil {
		t.Fatal(err)
	}
	if r := feed(`["t"]`, ""); r.StatusCode != http.StatusBadRequest {
		t.Errorf("in two ranges: %d with %d of 8 changes, want 400", r.StatusCode, len(idsOf(t, r)))
	}
	if r := feed(`["t","u1"]`, ""); len(idsOf(t, r)) != 1 {
		t.Errorf("a whole key: %d %s", r.StatusCode, r.Body)
	}
	found := 0
	for _, r := range live(t, srv) {
		if r := feed(`["t"]`, r.ID); r.StatusCode == http.StatusOK {
			found += len(idsOf(t, r))
		}
	}
	if found != 8 {
		t.Errorf("%d changes by range, want 8", found)
	}
}

// epkOf returns the first effective partition key that a condition allows.
func epkOf(t *testing.T, srv *cosmosemu.Server, where string) string {
	t.Helper()
	r := send(t, srv, http.MethodPost, "dbs/db/colls/c/docs", fmt.Sprintf(`{"query":"SELECT * FROM c WHERE %s"}`, where), map[string]string{"x-ms-cosmos-is-query-plan-request": "True"})
	_, rest, _ := strings.Cut(r.Body, `"min":"`)
	low, _, _ := strings.Cut(rest, `"`)
	return low
}
